"""Resolve points: threads and queue depth that a step takes from a loop's results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.protocol.loop_cells import matches
from drivelab.protocol.loops import description, selector
from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.plan_fields import cells_of
from drivelab.protocol.repeats import POINT, ExpandedStep
from drivelab.protocol.values import OF_A_POINT, Values, duration_s


def point(
    step: ExpandedStep, resolved: Mapping[str, Any], before: Sequence[Mapping[str, Any]], values: Values
) -> dict[str, Any]:
    """Return `point` for a resolved step in a repeat over points.

    The result is empty if none of its cells uses one. `before` holds the plan's earlier steps. Raises MisfitError if
    there is no loop to choose from, or if the choice is ambiguous.
    """
    cells = cells_of(resolved)
    if step.key != POINT or all({*OF_A_POINT} <= {*cell} for cell in cells):
        return {}
    if any(len({*OF_A_POINT} & {*cell}) == 1 for cell in cells):
        with at(*step.keys):
            raise MisfitError("takes only one of 'threads' and 'queue_depth' from a point; write 'each' for both")
    with at(*step.keys[:3], "over"):
        if step.after is None:
            raise MisfitError("no earlier loop provides points; put the repeat after a loop", (POINT,))
        wanted = values.filled(step.over["of"])
        with at("of"):
            of = selector(wanted)
            _refuse_ambiguous(before[step.after]["loop"], of, description(wanted))
        return {
            "point": {
                "name": step.value,
                "step": step.after,
                "of": of,
                "response_time_us": duration_s(step.over, "response_time") * 1e6,
            }
        }


def _refuse_ambiguous(loop: Mapping[str, Any], of: Mapping[str, Any], named: str) -> None:
    if "streams" in loop:
        raise MisfitError("the loop before uses a trace's streams; points need a loop whose cells the protocol lists")
    if "point" in loop:
        raise MisfitError("the loop before uses a point itself; put the repeat after the loop that provides the points")
    matching = [cell for cell in loop["cells"] if matches(cell, of)]
    if not matching:
        raise MisfitError(f"{named} matches no cell of the loop before; name one of its cells")
    labels: dict[tuple[int, int], str] = {}
    for cell in matching:
        demand, label = (cell["threads"], cell["queue_depth"]), Cell(**cell).label
        if demand in labels:
            raise MisfitError(f"{named} matches several cells of the loop before ({labels[demand]}, {label}); name one")
        labels[demand] = label
