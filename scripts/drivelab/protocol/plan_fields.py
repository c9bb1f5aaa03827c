"""Fields of a plan's condition and steps that say nothing when they are left out, read as what they mean then.

No imports that take time: a measuring process asks before every cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from drivelab.analysis.repeats import FEWEST, MOST


def fills(condition: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The passes of a condition's fill, in their order: none, one, or several."""
    fill = condition.get("fill", [])
    return [dict(one) for one in ([fill] if isinstance(fill, Mapping) else fill)]


def cells_of(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The cells of a step as a plan has them: of a loop all, of a soak the one, of a trace's streams none."""
    return [*fields.get("cells", ()), *([fields["cell"]] if "cell" in fields else [])]


def needs_over_provisioning(steps: Mapping[str, Any]) -> bool:
    """Whether a fill is in multiples of the drive's raw capacity; `steps` as in `Resolved` or a plan's subject."""
    return any("raw_capacity_multiple" in one for one in fills(steps["condition"]))


def pause_s(fields: Mapping[str, Any], runtime_s: float) -> float:
    """Idle time in seconds after a cell of a loop that took `runtime_s`; 0 without a pause or duty cycle.

    With a duty cycle the runtime is that share of runtime and pause together.
    """
    if "duty_cycle" in fields:
        return runtime_s * (1 / float(fields["duty_cycle"]) - 1)
    return float(fields.get("pause_s", 0.0))


def rounds_at_least(until: Mapping[str, Any]) -> int:
    """Rounds that count, of a loop with this stop rule, if all goes well; runs, of an application or replay."""
    return _rounds(until, "window", FEWEST)


def rounds_at_most(until: Mapping[str, Any]) -> int:
    """Rounds that count, of a loop with this stop rule, if its cells never agree; runs, of an application or replay."""
    return _rounds(until, "max_rounds", MOST)


def _rounds(until: Mapping[str, Any], of_steady_state: str, of_agreement: int) -> int:
    fixed: Iterable[str] = (of_steady_state, "rounds", "passes")
    return next((int(until[key]) for key in fixed if key in until), of_agreement)
