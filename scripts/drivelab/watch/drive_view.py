"""One drive of a study: what it does now, and its latest rates."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any

from drivelab.recording.writer import read_object
from drivelab.run.progress import Status, state_now, status_of
from drivelab.watch.rates import Point
from drivelab.watch.recording_view import SHOWN_S, Line, RecordingWatch

RUNNING, WAITING, DONE = "running", "waiting", "done"
STANDINGS = {
    RUNNING: "running",
    "measured": "measured",
    DONE: "between two stages",
    "failed": "failed",
    "interrupted": "interrupted",
    "silent": "no sign of life",
    WAITING: "to do",
}
"""States of a drive and their texts."""
_LEAST_SHARE = 0.05
"""Share of a stage that must be done before its end can be predicted."""


class DriveWatch:
    """Follows a drive from recording to recording by its status file, `status/DRIVE.json` in the results folder."""

    def __init__(self, root: Path, drive: str) -> None:
        self.root, self.drive = root, drive
        self._status: Status | None = None
        self._status_read: tuple[int, int] | None = None
        self._watch: RecordingWatch | None = None
        """The recording that the status names."""
        self._latest: Point | None = None
        """The last point of that recording."""
        self._trouble: str | None = None
        self._facts: dict[str, Any] = {"simulated": False, "virtual": False}
        """Facts of the drive from its latest recordings; a new recording does not have them yet."""
        self.points: deque[Point] = deque(maxlen=SHOWN_S)
        """The latest points, also those of earlier recordings."""

    def poll(self) -> list[Line]:
        """Return new lines of the journal; the state reports unreadable files."""
        self._read_status()
        if self._status is None:
            return []
        lines: list[Line] = []
        if self._watch is None or self._watch.name != self._status.recording:
            lines += self._read()  # the end of the recording before
            self._watch, self._latest, self._trouble = RecordingWatch(self.root, self._status.recording), None, None
        return [*lines, *self._read()]

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

    def _read(self) -> list[Line]:
        if self._watch is None:
            return []
        beginnings = self._watch.beginnings
        try:
            points, lines = self._watch.poll()
            self._facts |= self._watch.drive_facts()
        except Exception as error:  # from another version, or edited by hand
            self._trouble = f"{self._watch.name} cannot be read: {type(error).__name__}: {error}"
            return []
        if self._watch.beginnings != beginnings:
            self.points.clear()
            self._latest = None
        self.points.extend(points)
        self._latest = points[-1] if points else self._latest
        return lines

    def state(self, now_s: float) -> dict[str, Any]:
        """Return the drive's present state."""
        status = self._status
        if status is None:
            return {"drive": self.drive, "standing": WAITING}
        state = {} if self._watch is None else self._watch.state()
        standing = state_now(status, now_s)
        latest = self._latest if standing == RUNNING else None
        return {
            **state,
            **self._facts,
            "drive": self.drive,
            "standing": standing,
            "complete": self._watch is not None and self._watch.is_complete,
            "stage": status.stage,
            "text": status.text,
            "at_s": status.at_s,
            "left_s": _left_s(status, now_s) if standing == RUNNING else None,
            "failure": status.reason or state.get("failure"),
            "trouble": self._trouble,
            "latest": latest if latest is not None and _is_in(latest, status.stage) else None,
        }


def _is_in(point: Point, stage: str) -> bool:
    """Return whether a point belongs to the present stage; a purge has no points."""
    return stage != "purge" and point.conditioning == (stage == "precondition")


def _left_s(status: Status, now_s: float) -> float | None:
    """Return the seconds until the stage ends, at its average speed so far; an upper bound if it may end early."""
    spent_s = now_s - status.since_s
    if not _LEAST_SHARE <= status.fraction < 1 or spent_s <= 0:
        return None
    return float(round(spent_s * (1 / status.fraction - 1)))
