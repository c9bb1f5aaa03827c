"""One reader for all who watch: events with numbers, so that whoever was cut off goes on where it was."""

from __future__ import annotations

import json
import math
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from drivelab.watch.drive import News
from drivelab.watch.study import StudyWatch

PERIOD_S = 1.0
_NUMBER = re.compile(r"[0-9]{1,18}")
_KEPT = 120
"""Events that a page may have missed without getting everything anew."""


class Hub:
    """Asks the studies once a second, but only while somebody watches.

    An event's id is `BEGINNING-NUMBER`; the beginning is another one after each start of the server, so that a page
    that comes back with an id from before gets everything anew.
    """

    def __init__(self, studies: Sequence[StudyWatch], period_s: float = PERIOD_S) -> None:
        self._studies, self._period_s = studies, period_s
        self._beginning = f"{time.time_ns():x}"
        self._number = 0
        self._events: deque[tuple[int, bytes]] = deque(maxlen=_KEPT)
        self._state: list[dict[str, Any]] = []
        self._watchers = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the reader and all streams."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    @contextmanager
    def _counted(self) -> Iterator[int]:
        """One more watches; gives the number of the last event before."""
        with self._changed:
            self._watchers += 1
            self._changed.notify_all()
            before = self._number
        try:
            yield before
        finally:
            with self._changed:
                self._watchers -= 1

    def stream(self, last_id: str | None, patience_s: float = 15.0) -> Iterator[bytes]:
        """Server-sent events from `last_id` on, or from a snapshot; a comment where nothing was new for long."""
        with self._counted() as before:
            at = self._known(last_id)
            if at is None:
                self._wait(before, patience_s=None)  # the files are read first
                at, snapshot = self._snapshot()
                if snapshot is None:
                    return
                yield snapshot
            while True:
                events = self._wait(at, patience_s)
                if events is None:
                    return
                if not events:
                    yield b": nothing new\n\n"
                elif events[0][0] != at + 1:  # too slow: what it missed is gone
                    at, snapshot = self._snapshot()
                    if snapshot is None:
                        return
                    yield snapshot
                else:
                    yield b"".join(event for _, event in events)
                    at = events[-1][0]

    def _known(self, last_id: str | None) -> int | None:
        """The number of an event that what followed it is still here of."""
        beginning, _, number = (last_id or "").partition("-")
        if beginning != self._beginning or not _NUMBER.fullmatch(number):
            return None
        with self._changed:
            first = self._events[0][0] if self._events else self._number + 1
            return int(number) if first - 1 <= int(number) <= self._number else None

    def _wait(self, after: int, patience_s: float | None) -> list[tuple[int, bytes]] | None:
        """Events after one; none when patience is over, None when the hub is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._number > after, patience_s)
            return None if self._closed else [event for event in self._events if event[0] > after]

    def _snapshot(self) -> tuple[int, bytes | None]:
        """Everything, as it was at the last event."""
        with self._changed:
            if self._closed:
                return self._number, None
            history = {
                f"{one.facts.name}/{name}": [point.to_list() for point in points]
                for one in self._studies
                for watch in one.drives.values()
                for name, points in watch.history.items()
            }
            lines = [[at_s, one.facts.name, drive, text] for one in self._studies for at_s, drive, text in one.lines]
            body = {"studies": self._state, "points": history, "lines": sorted(lines)}
            return self._number, self._event("snapshot", self._number, body)

    def _event(self, kind: str, number: int, body: Mapping[str, Any]) -> bytes:
        body = {"now_s": time.time(), **body}
        try:
            data = json.dumps(body, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        except ValueError:
            data = json.dumps(_finite(body), separators=(",", ":"), ensure_ascii=False)
        # A lone surrogate, which a file's JSON may have, becomes the escape that JSON has for it.
        return f"event: {kind}\nid: {self._beginning}-{number}\ndata: {data}\n\n".encode(errors="backslashreplace")

    def _run(self) -> None:
        next_s = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._watchers)
                if self._closed:
                    return
                found = [(one, one.poll()) for one in self._studies]
                before, self._state = self._state, [one.state() for one in self._studies]
                self._number += 1
                body = {**_changes(before, self._state), **_news(found)}
                self._events.append((self._number, self._event("news", self._number, body)))
                self._changed.notify_all()
                next_s = max(next_s + self._period_s, time.monotonic())
                self._changed.wait_for(lambda: self._closed, next_s - time.monotonic())


def _news(found: Sequence[tuple[StudyWatch, Mapping[str, News]]]) -> dict[str, Any]:
    each = [(one.facts.name, drive, news) for one, by_drive in found for drive, news in by_drive.items()]
    return {
        "points": {
            f"{study}/{name}": [point.to_list() for point in points]
            for study, _, news in each
            for name, points in news.points.items()
        },
        "anew": [f"{study}/{name}" for study, _, news in each for name in news.anew],
        "lines": sorted([at_s, study, drive, text] for study, drive, news in each for at_s, text in news.lines),
    }


def _changes(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The studies with those of their drives that are not as before."""
    known = {(study["name"], drive["drive"]): drive for study in before for drive in study["drives"]}
    return {
        "studies": [
            {**study, "drives": [one for one in study["drives"] if known.get((study["name"], one["drive"])) != one]}
            for study in now
        ]
    }


def _finite(value: Any) -> Any:
    """JSON has no number that is none, although Python writes and reads one."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
