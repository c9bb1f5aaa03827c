"""What ends a loop: steady state, a number of rounds, or repeated rounds that agree.

No imports that take time: a measuring process asks after every round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.analysis.repeats import MOST, next_action
from drivelab.analysis.steady_state import is_steady
from drivelab.protocol.loop_cells import matches

Metrics = Mapping[str, float]
"""Values of a finished cell by the name of the metric."""


def verdict(
    cells: Sequence[Mapping[str, Any]],
    rounds: Sequence[Sequence[Metrics]],
    until: Mapping[str, Any],
    not_before: int = 1,
) -> dict[str, bool] | None:
    """Whether a loop ends after its whole rounds so far: None if not, else what there is to say of it.

    `rounds` has, for each cell, the metrics of the rounds that count; `until` is the rule as in a plan; `not_before`
    is the first round after an interruption, which only a steady-state window minds: rounds of the other rules stand
    for themselves. `steady` is true or, at `max_rounds` since then, false; `agreed` likewise; a fixed number of rounds
    says nothing. Raises ValueError for a steady state of which no cell is tracked.
    """
    count = len(rounds[0])
    if "rounds" in until:
        return {} if count >= until["rounds"] else None
    if "threshold" in until:
        return _agreement(rounds, until)
    if is_steady(tracked(cells, rounds, until), until, not_before):
        return {"steady": True}
    return {"steady": False} if count - (not_before - 1) >= until["max_rounds"] else None


def tracked(
    cells: Sequence[Mapping[str, Any]], rounds: Sequence[Sequence[Metrics]], until: Mapping[str, Any]
) -> dict[str, list[float]]:
    """For each tracked variable a value for each round; arguments as for `verdict`."""
    return {
        f"{index}/{variable['metric']}": [one[variable["metric"]] for one in rounds[index]]
        for variable in until["track"]
        for index, cell in enumerate(cells)
        if matches(cell, variable)
    }


def _agreement(rounds: Sequence[Sequence[Metrics]], until: Mapping[str, Any]) -> dict[str, bool] | None:
    """Three rounds, five or seven, until the values of every cell agree."""
    actions = [next_action([one[until["metric"]] for one in cell], 100 * until["threshold"]) for cell in rounds]
    if all(action.enough for action in actions):
        return {"agreed": True}
    return {"agreed": False} if len(rounds[0]) == MOST else None
