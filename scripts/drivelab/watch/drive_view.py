"""One drive of a study: its present activity, history and progress."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drivelab.campaign.planning import STAGES as CHAIN
from drivelab.recording.writer import MANIFEST, read_object
from drivelab.run.progress import Status, state_now, status_of
from drivelab.watch.follow import Follower
from drivelab.watch.rates import Point
from drivelab.watch.recording_view import Line, RecordingWatch

_LOGS = (*CHAIN, "replay")
_MOST_RECORDINGS = 60
"""Recordings followed or kept at a time; fewer if their points exceed the limit."""
RUNNING, WAITING = "running", "waiting"
STANDINGS = {
    RUNNING: "running",
    "measured": "measured",
    "between": "between two stages",
    "failed": "failed",
    "interrupted": "interrupted",
    "silent": "no sign of life",
    WAITING: "to do",
}
"""States of a drive and their texts; the page has the same."""
_LEAST_SHARE = 0.05
"""Share of a stage that must be done before its end can be predicted."""


@dataclass
class News:
    """What is new of a drive since the last poll."""

    points: dict[str, list[Point]] = field(default_factory=dict)
    """New points by recording."""
    restarted: list[str] = field(default_factory=list)
    """Recordings that were restarted; their earlier points are discarded."""
    lines: list[Line] = field(default_factory=list)


class DriveWatch:
    """Follows a drive from recording to recording by its status file, `status/DRIVE.json` in the results folder."""

    def __init__(self, root: Path, drive: str, recordings: Sequence[str], most_points: int) -> None:
        """Start with the names of all `recordings` of the drive in the study."""
        self.root, self.drive = root, drive
        self._names = recordings
        self._most_points = most_points
        self._status: Status | None = None
        self._status_read: tuple[int, int] | None = None
        self._recordings: dict[str, RecordingWatch] = {}
        self._ended: set[str] = set()
        """Recordings that are complete and read to the end."""
        self._logs: dict[Path, Follower] = {}
        self._trouble: str | None = None
        self._forgotten: set[str] = set()
        """Recordings whose points are no longer kept."""
        self._purges: dict[str, tuple[float, float]] = {}
        """Observed purges by recording: begin and last sign of life. No file keeps the begin."""
        self._facts: dict[str, Any] = {"model": None, "firmware": None, "simulated": False, "virtual": False}
        """Facts of the drive from its latest recordings; a new recording does not have them yet."""
        self.history: dict[str, deque[Point]] = {}
        """Points by recording, oldest recording first: of the drive's last hour of work, or a bit more."""

    def poll(self) -> News:
        """Return what is new; the state reports unreadable files, which do not affect other drives."""
        news = News()
        self._read_status()
        if self._status is None:
            return news
        name = self._status.recording
        try:
            self._poll(name, news)
        except Exception as error:  # from another version, or edited by hand
            self._trouble = f"{name} cannot be read: {type(error).__name__}: {error}"
        return news

    def _read_status(self) -> None:
        """Read the status file if it has changed; a study may have a thousand drives."""
        path = self.root / "status" / f"{self.drive}.json"
        try:
            at = path.stat()
        except OSError:
            return
        if (read := (at.st_mtime_ns, at.st_ino)) != self._status_read:
            self._status = status_of(read_object(path)) or self._status
            self._status_read = read
            if self._status is not None and self._status.stage == "purge":
                self._purges.pop(self._status.recording, None)
                self._purges[self._status.recording] = (self._status.since_s, self._status.at_s)

    def _poll(self, name: str, news: News) -> None:
        if name not in self._recordings:
            for earlier in self._lately_measured():
                self._follow(earlier)
            self._follow(name)
            self._logs = {self.root / "logs" / rule / f"{name}.log": Follower(4096) for rule in _LOGS}
        for known, watch in self._recordings.items():
            if known == name or known not in self._ended:
                self._read(known, watch, news)
        news.lines = sorted([*news.lines, *self._log_lines()])
        self._forget()

    def _forget(self) -> None:
        """Drop the oldest recordings while the later ones fill the limit of points."""
        points = sum(map(len, self.history.values()))
        for oldest in list(self._recordings)[:-1]:
            points -= len(self.history.get(oldest, ()))
            if points < self._most_points and len(self._recordings) <= _MOST_RECORDINGS:
                break
            del self._recordings[oldest]
            self.history.pop(oldest, None)
            self._purges.pop(oldest, None)
            self._forgotten.add(oldest)

    def _read(self, name: str, watch: RecordingWatch, news: News) -> None:
        is_complete, beginnings = watch.is_complete, watch.beginnings
        points, lines = watch.poll()
        self._facts |= watch.drive_facts()
        if watch.beginnings != beginnings and self.history.pop(name, None) is not None:
            news.restarted.append(name)
        news.lines += lines
        if points:
            news.points[name] = points
            self.history.setdefault(name, deque(maxlen=self._most_points)).extend(points)
        elif is_complete and not lines:
            self._ended.add(name)

    def _follow(self, name: str) -> None:
        """Follow a recording as the latest; a repeated recording restarts."""
        watch = self._recordings.pop(name, None) or RecordingWatch(self.root, name, self._most_points)
        self._recordings[name] = watch
        self._ended.discard(name)
        self._trouble = None

    def _lately_measured(self) -> list[str]:
        """Return recordings that ended before this watch, finished or not, oldest first, within the history's span."""
        recent = []
        for name in self._names:
            if name in self._recordings or name in self._forgotten:
                continue
            at_s = self._ended_s(name)
            if at_s is not None and time.time() - at_s < self._most_points:
                recent.append((at_s, name))
        return [name for _, name in sorted(recent)[1 - _MOST_RECORDINGS :]]

    def _ended_s(self, name: str) -> float | None:
        """Return when a recording was completed, or its journal was last written; None if there is none."""
        for file in (f"{name}/{MANIFEST}", f"{name}.part/journal.jsonl"):
            with suppress(OSError):
                return (self.root / "recordings" / file).stat().st_mtime
        return None

    def _log_lines(self) -> list[Line]:
        at_s = self._status.at_s if self._status is not None else 0.0
        return [(at_s, line) for path, log in self._logs.items() for line in log.read(path) if line.strip()]

    def state(self, now_s: float) -> dict[str, Any]:
        """Return the drive's present state for JSON."""
        status = self._status
        if status is None:
            return {"drive": self.drive, "standing": WAITING}
        watch = self._recordings.get(status.recording)
        state = self._of_recording(watch) if watch is not None else {}
        standing = self._standing(status, watch, now_s)
        points = self.history.get(status.recording)
        latest = points[-1] if points and standing == RUNNING and _is_in(points[-1], status.stage) else None
        return {
            **state,
            **self._facts,
            "drive": self.drive,
            "host": status.host,
            "standing": standing,
            "stage": status.stage,
            "text": status.text,
            "fraction": status.fraction,
            "at_s": status.at_s,
            "left_s": _left_s(status, now_s) if standing == RUNNING else None,
            "failure": status.reason or state.get("failure"),
            "trouble": self._trouble,
            "latest": latest.to_list() if latest is not None else None,
            "purges": list(self._purges.values()),
        }

    def _of_recording(self, watch: RecordingWatch) -> dict[str, Any]:
        try:
            return watch.state()
        except Exception as error:  # from another version, or edited by hand
            self._trouble = f"{watch.name} cannot be read: {type(error).__name__}: {error}"
            return {}

    def share(self, *, done: bool) -> float:
        """Return the finished share of the present recording, with equal weight per stage; 0 if it is `done`."""
        status = self._status
        if status is None or done or status.stage not in CHAIN:
            return 0.0
        return (CHAIN.index(status.stage) + min(max(status.fraction, 0.0), 1.0)) / len(CHAIN)

    def _standing(self, status: Status, watch: RecordingWatch | None, now_s: float) -> str:
        """Return one of `STANDINGS`."""
        state = state_now(status, now_s)
        if state != "done":
            return state
        return "measured" if watch is not None and watch.is_complete else "between"


def _is_in(point: Point, stage: str) -> bool:
    """Return whether a point belongs to the present stage; a purge has no points."""
    return stage != "purge" and point.conditioning == (stage == "precondition")


def _left_s(status: Status, now_s: float) -> float | None:
    """Return the seconds until the stage ends, at its average speed so far; an upper bound if it may end early."""
    spent_s = now_s - status.since_s
    if not _LEAST_SHARE <= status.fraction < 1 or spent_s <= 0:
        return None
    return float(round(spent_s * (1 / status.fraction - 1)))
