"""What the plan of a recording asks of its replays."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Asked:
    """By step of the plan: the passes asked for, and whether all passes of its phase are prepared alike."""

    passes: Mapping[int, int]
    alike: Mapping[str, bool]

    def of(self, step: int, phase: str | None) -> dict[str, int | bool | None]:
        """Columns of REPLAYS; null where repeats go on until they agree, and of a replay in no phase."""
        return {
            "asked_passes": self.passes.get(step),
            "alike_passes": None if phase is None else self.alike.get(phase),
        }


def asked(recording: Path) -> Asked:
    """From plan.json; nothing is asked where there is no plan."""
    plan = recording / "plan.json"
    if not plan.exists():
        return Asked({}, {})
    steps: list[dict[str, Any]] = json.loads(plan.read_text(encoding="utf-8"))["subject"]["measure"]
    passes: dict[int, int] = {}
    phases: defaultdict[str, defaultdict[int, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for number, step in enumerate(steps):
        ((kind, fields),) = step.items()
        if kind == "replay" and "passes" in fields["until"]:
            passes[number] = int(fields["until"]["passes"])
        if "phase" in fields:
            what = {name: value for name, value in fields.items() if name != "phase_pass"}
            phases[fields["phase"]][fields["phase_pass"]].append((kind, what))
    alike = {phase: all(one == next(iter(found.values())) for one in found.values()) for phase, found in phases.items()}
    return Asked(passes, alike)
