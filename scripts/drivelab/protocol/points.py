"""Points of a demand sweep: numbers of threads and depths that a later step takes from what a loop has measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.protocol.loop_cells import matches
from drivelab.protocol.loops import place, words
from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.plan_fields import cells_of
from drivelab.protocol.repeats import POINT, Turn
from drivelab.protocol.values import OF_A_POINT, Values, duration_s


def point(turn: Turn, made: Mapping[str, Any], before: Sequence[Mapping[str, Any]], values: Values) -> dict[str, Any]:
    """`point` for a step `made` for a plan in a repeat over points, empty if none of its cells takes one.

    `before` are the steps of the plan before it. Raises MisfitError when there is no loop to choose of, or a
    choice would not be clear.
    """
    cells = cells_of(made)
    if turn.key != POINT or all({*OF_A_POINT} <= {*cell} for cell in cells):
        return {}
    if any(len({*OF_A_POINT} & {*cell}) == 1 for cell in cells):
        with at(*turn.keys):
            raise MisfitError("takes one of 'threads' and 'queue_depth' of a point; write 'each' for both of them")
    with at(*turn.keys[:3], "over"):
        if turn.after is None:
            raise MisfitError("no loop before has points to choose of; put the repeat behind one", (POINT,))
        wanted = values.filled(turn.over["of"])
        with at("of"):
            of = place(wanted)
            _refuse_unclear(before[turn.after]["loop"], of, words(wanted))
        return {
            "point": {
                "name": turn.value,
                "step": turn.after,
                "of": of,
                "response_time_us": duration_s(turn.over, "response_time") * 1e6,
            }
        }


def _refuse_unclear(loop: Mapping[str, Any], of: Mapping[str, Any], named: str) -> None:
    if "streams" in loop:
        raise MisfitError("the loop before has a trace's streams; points are chosen of cells that a protocol gives")
    if "point" in loop:
        raise MisfitError("the loop before has a point itself; put the repeat behind the loop to choose of")
    found = [cell for cell in loop["cells"] if matches(cell, of)]
    if not found:
        raise MisfitError(f"{named} is no cell of the loop before; name one of its cells")
    labels: dict[tuple[int, int], str] = {}
    for cell in found:
        demand, label = (cell["threads"], cell["queue_depth"]), Cell(**cell).label
        if demand in labels:
            raise MisfitError(f"{named} is of several cells of the loop before ({labels[demand]}, {label}); say which")
        labels[demand] = label
