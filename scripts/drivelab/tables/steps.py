"""Columns from the plan's steps: the journal's lines have only step numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.protocol.plan_fields import fills, pause_s

STEADY_STATE = "steady state"
ROUNDS = "rounds"
RELATIVE_STANDARD_ERROR = "relative standard error"
UNTIL = (STEADY_STATE, ROUNDS, RELATIVE_STANDARD_ERROR)
"""Stop rules of a loop: values of the column `until`."""


class Steps:
    """The `condition` and the `measure` of a plan."""

    def __init__(self, condition: Mapping[str, Any], measure: Sequence[Mapping[str, Any]]) -> None:
        self._filled = bool(fills(condition))
        self._fields: list[Mapping[str, Any]] = []
        self._kinds: list[str] = []
        for step in measure:
            ((kind, fields),) = step.items()
            self._kinds.append(kind)
            self._fields.append(fields)

    def turn(self, step: int) -> dict[str, Any]:
        """Return columns `phase`, `phase_value`, `phase_pass`; null for a step that is not repeated."""
        return {name: self._fields[step].get(name) for name in ("phase", "phase_value", "phase_pass")}

    def planned(self, step: int, cell: Cell) -> dict[str, Any]:
        """Return columns `filled`, `point`, `until` and `pause_s` of a cell of this step."""
        fields = self._fields[step]
        point = fields.get("point")
        return {
            "filled": self._filled,
            "point": None if point is None else point["name"],
            "until": stop_rule(fields["until"]) if self._kinds[step] == "loop" else None,
            "pause_s": pause_s(fields, cell.runtime_s or 0.0) or None,
        }


def stop_rule(until: Mapping[str, Any]) -> str:
    """Return the stop rule of a loop, one of UNTIL, from its `until` in a plan."""
    if "track" in until:
        return STEADY_STATE
    return ROUNDS if "rounds" in until else RELATIVE_STANDARD_ERROR
