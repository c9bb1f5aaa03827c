"""What a drive is to have of a study, and what is there of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from drivelab.plan.plan import Plan
from drivelab.recording.places import home
from drivelab.recording.writer import MANIFEST


@dataclass(frozen=True)
class Inventory:
    """The recordings of one drive."""

    plans: Mapping[str, Plan]
    """By their recordings, in the study's order."""
    results: Path
    """The results folder, of a fleet the drive's own."""
    finished: frozenset[str]
    parts: frozenset[str]
    """Unfinished ones, by the names of their recordings."""

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Inventory:
        """Of one drive, which has one results folder. Folders are listed: a study may have tens of thousands."""
        by_recording = {plan.recording: plan for plan in plans}
        results = home(Path(plans[0].context["results"]), plans[0].recording)
        there = set(folders(f"{results}/recordings/{plans[0].drive}", plans[0].drive, depth=2))
        return cls(
            by_recording, results,
            frozenset(name for name in there & by_recording.keys()
                      if Path(f"{results}/recordings/{name}/{MANIFEST}").exists()),
            frozenset(name for name in by_recording if f"{name}.part" in there),
        )  # fmt: skip

    @property
    def left(self) -> list[Plan]:
        """Plans that no finished recording is there of."""
        return [plan for name, plan in self.plans.items() if name not in self.finished]

    def part(self, recording: str) -> Path:
        """Where a recording is made."""
        return self.results / "recordings" / f"{recording}.part"


def folders(path: str, name: str = "", depth: int = 1) -> Iterator[str]:
    """Names of what is so deep below a folder, each after `name`; none where it is not there."""
    try:
        with os.scandir(path) as entries:
            found = [entry.name for entry in entries]
    except OSError:
        return
    for one in found:
        below = f"{name}/{one}" if name else one
        if depth == 1:
            yield below
        else:
            yield from folders(f"{path}/{one}", below, depth - 1)
