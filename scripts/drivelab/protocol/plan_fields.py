"""Read optional fields of a plan's condition and steps.

No slow imports: a measuring process needs this module before every cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drivelab.analysis.repeats import FEWEST, MOST


def fills(condition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the passes of a condition's fill, in order: none, one or several."""
    fill = condition.get("fill", [])
    return [dict(fields) for fields in ([fill] if isinstance(fill, Mapping) else fill)]


def cells_of(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the cells of a plan's loop or soak; none for a trace's streams."""
    return [*fields.get("cells", ()), *([fields["cell"]] if "cell" in fields else [])]


def needs_over_provisioning(steps: Mapping[str, Any]) -> bool:
    """Return whether a fill uses multiples of the raw capacity.

    `steps` as in `Resolved` or a plan's subject.
    """
    return any("raw_capacity_multiple" in fill for fill in fills(steps["condition"]))


def pause_s(fields: Mapping[str, Any], runtime_s: float) -> float:
    """Return the idle time in seconds after a loop's cell that took `runtime_s`.

    Return 0 without pause or duty cycle. The duty cycle is runtime divided by the sum of runtime and pause.
    """
    if "duty_cycle" in fields:
        return runtime_s * (1 / float(fields["duty_cycle"]) - 1)
    return float(fields.get("pause_s", 0.0))


def rounds_at_least(until: Mapping[str, Any]) -> int:
    """Return the fewest counted rounds (or runs) under a stop rule."""
    return _rounds(until, "window", FEWEST)


def rounds_at_most(until: Mapping[str, Any]) -> int:
    """Return the most counted rounds (or runs) under a stop rule."""
    return _rounds(until, "max_rounds", MOST)


def _rounds(until: Mapping[str, Any], steady_state_key: str, agreement_rounds: int) -> int:
    fixed: Iterable[str] = (steady_state_key, "rounds", "passes")
    return next((int(until[key]) for key in fixed if key in until), agreement_rounds)
