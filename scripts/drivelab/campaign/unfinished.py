"""Measurements that failed or were killed and are not running; the drive may run others by now."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from drivelab.plan.plan import Plan
from drivelab.recording.writer import MANIFEST, read_journal
from drivelab.run.progress import Status, read_aside


@dataclass(frozen=True)
class Inventory:
    """The recordings of one drive."""

    plans: Mapping[str, Plan]
    """Plans by recording, in the study's order."""
    results: Path
    finished: frozenset[str]
    parts: frozenset[str]
    """Names of the unfinished recordings."""

    @classmethod
    def of(cls, plans: Sequence[Plan]) -> Inventory:
        """Return the inventory of one drive, from folder listings: a study may have tens of thousands of plans."""
        by_recording = {plan.recording: plan for plan in plans}
        results = Path(plans[0].context["results"])
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


_NO_MESSAGE = "its process ended without a message"


@dataclass(frozen=True)
class Unfinished:
    """A measurement that failed or was killed, possibly during purge or preconditioning."""

    recording: str
    state: str
    """`failed`, or `interrupted` if its process is gone."""
    reason: str
    """Why it failed or ended."""
    stage: str | None = None
    seen_s: float | None = None
    """Last sign of life, Unix time in seconds."""


def unfinished_of(inventory: Inventory, at_work_on: str | None) -> list[Unfinished]:
    """Return a drive's unfinished measurements in the study's order, except `at_work_on`, which its status shows."""
    drive = next(iter(inventory.plans.values())).drive
    aside = {name.removesuffix(".json") for name in folders(f"{inventory.results}/status/{drive}", drive, depth=2)}
    wanted = inventory.parts | aside
    names = [plan.recording for plan in inventory.left if plan.recording in wanted and plan.recording != at_work_on]
    return [unfinished for name in names if (unfinished := _unfinished(inventory, name)) is not None]


def _unfinished(inventory: Inventory, name: str) -> Unfinished | None:
    status = read_aside(inventory.results, name)
    if status is not None:
        reason = status.reason or last_words(inventory.results, status)
        return Unfinished(name, status.state, reason, status.stage, status.at_s)
    if not (inventory.part(name) / "journal.jsonl").exists():
        return None
    lines: list[dict[str, Any]] = []
    with suppress(OSError, ValueError):
        lines = list(read_journal(inventory.part(name)))
    last = lines[-1] if lines else {}
    if last.get("event") == "failed":
        return Unfinished(name, "failed", str(last.get("reason")), last.get("stage", "measure"), _seen_s(last))
    return Unfinished(name, "interrupted", "it was started, and no process reports on it", seen_s=_seen_s(last))


def _seen_s(line: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(line["at"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return None


def last_words(results: Path, status: Status) -> str:
    """Return the last message in the log of a stage whose status has no reason."""
    for rule in (status.stage, "replay", "measure_together"):
        try:
            lines = (results / "logs" / rule / f"{status.recording}.log").read_text(errors="replace").splitlines()
        except OSError:
            continue
        messages = [line.removeprefix("drivelab: ") for line in lines if line.startswith("drivelab: ")]
        if messages:
            return messages[-1]
    return _NO_MESSAGE
