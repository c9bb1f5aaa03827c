"""One reader for all pages: numbered events, so that a page that lost its connection continues where it was."""

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

from drivelab.watch.drive_view import News
from drivelab.watch.study_view import StudyWatch

PERIOD_S = 1.0
_NUMBER = re.compile(r"[0-9]{1,18}")
_KEPT = 120
"""Events that a page may miss without a new snapshot."""


class Hub:
    """Polls the studies once a second, but only while a page is connected.

    An event's id is `BEGINNING-NUMBER`. The beginning changes with each start of the server, so a page that returns
    with an earlier id gets a new snapshot.
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
        """End the reader and all streams."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()

    @contextmanager
    def _counted(self) -> Iterator[int]:
        """Count one more watcher; yield the number of the last event."""
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
        """Yield server-sent events after `last_id` or a snapshot; a comment after `patience_s` without events."""
        with self._counted() as before:
            at = self._known(last_id)
            if at is None:
                self._wait(before, patience_s=None)  # wait for a fresh poll
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
                elif events[0][0] != at + 1:  # too slow: the missed events are gone
                    at, snapshot = self._snapshot()
                    if snapshot is None:
                        return
                    yield snapshot
                else:
                    yield b"".join(event for _, event in events)
                    at = events[-1][0]

    def _known(self, last_id: str | None) -> int | None:
        """Return the number of an event if all later events are kept, else None."""
        beginning, _, number = (last_id or "").partition("-")
        if beginning != self._beginning or not _NUMBER.fullmatch(number):
            return None
        with self._changed:
            first = self._events[0][0] if self._events else self._number + 1
            return int(number) if first - 1 <= int(number) <= self._number else None

    def _wait(self, after: int, patience_s: float | None) -> list[tuple[int, bytes]] | None:
        """Return the events after a number; an empty list after `patience_s`, None when the hub is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._number > after, patience_s)
            return None if self._closed else [event for event in self._events if event[0] > after]

    def _snapshot(self) -> tuple[int, bytes | None]:
        """Return the last event's number and a snapshot of everything at that event."""
        with self._changed:
            if self._closed:
                return self._number, None
            history = {
                f"{study.facts.name}/{name}": [point.to_list() for point in points]
                for study in self._studies
                for watch in study.drives.values()
                for name, points in watch.history.items()
            }
            lines = [
                [at_s, study.facts.name, drive, text] for study in self._studies for at_s, drive, text in study.lines
            ]
            body = {"studies": self._state, "points": history, "lines": sorted(lines)}
            return self._number, self._event("snapshot", self._number, body)

    def _event(self, kind: str, number: int, body: Mapping[str, Any]) -> bytes:
        body = {"now_s": time.time(), **body}
        try:
            data = json.dumps(body, separators=(",", ":"), allow_nan=False, ensure_ascii=False)
        except ValueError:
            data = json.dumps(_finite(body), separators=(",", ":"), ensure_ascii=False)
        # A lone surrogate, which a file's JSON may contain, becomes its JSON escape.
        return f"event: {kind}\nid: {self._beginning}-{number}\ndata: {data}\n\n".encode(errors="backslashreplace")

    def _run(self) -> None:
        next_s = time.monotonic()
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._watchers)
                if self._closed:
                    return
                polled = [(study, study.poll()) for study in self._studies]
                before, self._state = self._state, [study.state() for study in self._studies]
                self._number += 1
                body = {**_changes(before, self._state), **_news(polled)}
                self._events.append((self._number, self._event("news", self._number, body)))
                self._changed.notify_all()
                next_s = max(next_s + self._period_s, time.monotonic())
                self._changed.wait_for(lambda: self._closed, next_s - time.monotonic())


def _news(polled: Sequence[tuple[StudyWatch, Mapping[str, News]]]) -> dict[str, Any]:
    entries = [(study.facts.name, drive, news) for study, by_drive in polled for drive, news in by_drive.items()]
    return {
        "points": {
            f"{study}/{name}": [point.to_list() for point in points]
            for study, _, news in entries
            for name, points in news.points.items()
        },
        "restarted": [f"{study}/{name}" for study, _, news in entries for name in news.restarted],
        "lines": sorted([at_s, study, drive, text] for study, drive, news in entries for at_s, text in news.lines),
    }


def _changes(before: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the studies with only their changed drives."""
    known = {(study["name"], drive["drive"]): drive for study in before for drive in study["drives"]}
    return {
        "studies": [
            {**study, "drives": [row for row in study["drives"] if known.get((study["name"], row["drive"])) != row]}
            for study in now
        ]
    }


def _finite(value: Any) -> Any:
    """Replace NaN and infinity by None: JSON has neither, although Python writes and reads them."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
