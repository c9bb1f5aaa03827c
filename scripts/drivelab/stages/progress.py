"""What a running stage is doing, in a small file that anybody may read: one per drive."""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from drivelab.plan.plan import Plan
from drivelab.recording.writer import write_json


@dataclass(frozen=True)
class Status:
    """One line of progress."""

    recording: str
    stage: str
    text: str
    """For people, for example `round 4 of at most 25, RND 4KiB 0/100 T2Q8, 2,310 IOPS`."""
    fraction: float
    """Share of the stage that is done, as far as one can know; 1 at the end."""
    pid: int
    at_s: float
    """Time of day, seconds since 1970."""


class Progress:
    """Writes `status/DRIVE.json` in the results folder; a reader always finds a whole file."""

    def __init__(self, plan: Plan, stage: str) -> None:
        self._path = Path(plan.context["results"]) / "status" / f"{plan.drive}.json"
        self._recording = plan.recording
        self._stage = stage
        self.say("begins", 0.0)

    def say(self, text: str, fraction: float) -> None:
        write_json(
            self._path,
            asdict(Status(self._recording, self._stage, text, round(min(fraction, 1.0), 4), os.getpid(), time.time())),
        )
