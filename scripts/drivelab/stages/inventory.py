"""The planned recordings of a drive, and which of them exist."""

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
    """Plans by recording, in the study's order."""
    results: Path
    """The results folder; in a fleet, the drive's own folder."""
    finished: frozenset[str]
    parts: frozenset[str]
    """Names of the unfinished recordings."""

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Inventory:
        """Return the inventory of one drive, from folder listings: a study may have tens of thousands of plans."""
        by_recording = {plan.recording: plan for plan in plans}
        results = home(Path(plans[0].context["results"]), plans[0].recording)
        existing = set(folders(f"{results}/recordings/{plans[0].drive}", plans[0].drive, depth=2))
        return cls(
            by_recording, results,
            frozenset(name for name in existing & by_recording.keys()
                      if Path(f"{results}/recordings/{name}/{MANIFEST}").exists()),
            frozenset(name for name in by_recording if f"{name}.part" in existing),
        )  # fmt: skip

    @property
    def left(self) -> list[Plan]:
        """Plans without a finished recording."""
        return [plan for name, plan in self.plans.items() if name not in self.finished]

    def part(self, recording: str) -> Path:
        """Return the folder of an unfinished recording."""
        return self.results / "recordings" / f"{recording}.part"


def folders(path: str, name: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the names of entries at `depth` below a folder, each after `name`; none if the folder is missing."""
    try:
        with os.scandir(path) as entries:
            children = [entry.name for entry in entries]
    except OSError:
        return
    for child in children:
        below = f"{name}/{child}" if name else child
        if depth == 1:
            yield below
        else:
            yield from folders(f"{path}/{child}", below, depth - 1)
