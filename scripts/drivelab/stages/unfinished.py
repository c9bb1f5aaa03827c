"""Measurements that failed or were killed and are not running; the drive may run others by now."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from drivelab.recording.writer import read_journal
from drivelab.stages.inventory import Inventory, folders
from drivelab.stages.progress import Status, read_aside

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
