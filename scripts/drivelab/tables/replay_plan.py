"""The replays in the plan of a recording."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class PlannedReplays:
    """Planned passes by step, and by phase whether all passes are prepared in the same way."""

    passes: Mapping[int, int]
    alike: Mapping[str, bool]

    def of(self, step: int, phase: str | None) -> dict[str, int | bool | None]:
        """Return columns of REPLAYS; null if repeats continue until they agree, or without a phase."""
        return {
            "asked_passes": self.passes.get(step),
            "alike_passes": None if phase is None else self.alike.get(phase),
        }


def planned_replays(recording: Path) -> PlannedReplays:
    """Read the planned replays from plan.json; a recording without a plan has none."""
    plan = recording / "plan.json"
    if not plan.exists():
        return PlannedReplays({}, {})
    steps: list[dict[str, Any]] = json.loads(plan.read_text(encoding="utf-8"))["subject"]["measure"]
    passes: dict[int, int] = {}
    phases: defaultdict[str, defaultdict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for number, step in enumerate(steps):
        ((kind, fields),) = step.items()
        if kind == "replay" and "passes" in fields["until"]:
            passes[number] = int(fields["until"]["passes"])
        if "phase" in fields:
            settings = {name: value for name, value in fields.items() if name != "phase_pass"}
            phases[fields["phase"]][fields["phase_pass"]].append((kind, settings))
    alike = {phase: all(steps == by_pass[min(by_pass)] for steps in by_pass.values())
             for phase, by_pass in phases.items()}  # fmt: skip
    return PlannedReplays(passes, alike)
