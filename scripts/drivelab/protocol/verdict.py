"""Decide when a loop ends: steady state, a number of rounds, or agreement.

No slow imports: a measuring process needs this module after every round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.analysis.repeats import MOST, next_action
from drivelab.analysis.steady_state import is_steady
from drivelab.protocol.loop_cells import matches

Metrics = Mapping[str, float]
"""Values of a finished cell by metric name."""


def verdict(
    cells: Sequence[Mapping[str, Any]],
    rounds: Sequence[Sequence[Metrics]],
    until: Mapping[str, Any],
    not_before: int = 1,
) -> dict[str, bool] | None:
    """Return the verdict on a loop that ends now, or None if it continues.

    Args:
        cells: the loop's cells.
        rounds: for each cell, the metrics of the counted rounds.
        until: the stop rule as in a plan.
        not_before: the first round after an interruption. Only a steady-state window depends on it.

    `steady` is true, or false at `max_rounds` since `not_before`. `agreed` is true, or false after the most repeats. A
    fixed number of rounds gives an empty verdict. Raises ValueError for a steady state without a tracked cell.
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
    """Return one value per round for each tracked variable.

    Arguments as for `verdict`.
    """
    return {
        f"{index}/{variable['metric']}": [metrics[variable["metric"]] for metrics in rounds[index]]
        for variable in until["track"]
        for index, cell in enumerate(cells)
        if matches(cell, variable)
    }


def _agreement(rounds: Sequence[Sequence[Metrics]], until: Mapping[str, Any]) -> dict[str, bool] | None:
    """Return the verdict when every cell agrees after three, five or seven rounds."""
    actions = [next_action([metrics[until["metric"]] for metrics in cell], 100 * until["threshold"]) for cell in rounds]
    if all(action.enough for action in actions):
        return {"agreed": True}
    return {"agreed": False} if len(rounds[0]) == MOST else None
