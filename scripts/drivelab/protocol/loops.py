"""The loop step resolved: its cells and what is tracked until steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.protocol.loop_cells import loop_cells, matches, place
from drivelab.protocol.values import Values
from drivelab.units import parse_duration, parse_share

_DEMAND = ("threads", "queue_depth")


def loop(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """The step for a plan: `cells`, or `streams` where they come from a trace, and `until`.

    Raises UserError when the criterion does not fit the cells.
    """
    wanted = fields["cells"]
    if isinstance(wanted, Mapping) and "streams" in wanted:
        return _of_streams(fields, values)
    for one in _DEMAND:
        if isinstance(fields.get(one), list):
            raise UserError(
                f"protocol '{values.protocol}': key 'loop.{one}' is a list, which only cells of 'streams' can be "
                "measured over; give a number"
            )
    cells = [values.cell(one, one["runtime_s"]).to_mapping() for one in loop_cells(fields, values.protocol)]
    places = [place(one) for one in cells]
    if len(set(places)) < len(places):
        twice = next(Cell(**one).workload for one, at in zip(cells, places, strict=True) if places.count(at) > 1)
        raise UserError(f"protocol '{values.protocol}': the loop has {twice} twice; leave one out")
    track = [_variable(one, fields, values) for one in fields["until"]["steady_state"]["track"]]
    for variable in track:
        if not any(matches(cell, variable) for cell in cells):
            pattern = f"{variable['pattern']} access, " if isinstance(wanted, list) else ""
            raise UserError(
                f"protocol '{values.protocol}': tracks {pattern}read share {variable['read_share']} at "
                f"{variable['block_size_bytes']} bytes, which is no cell of the loop; add it to the cells"
            )
    return {"cells": cells, "until": _until(fields, values, track)}


def _variable(tracked: Mapping[str, Any], fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    if "streams" in tracked or {*_DEMAND} & {*tracked}:
        raise UserError(
            f"protocol '{values.protocol}': tracks streams, threads or depths, but the loop has no cells of "
            "'streams'; track a read share and a block size"
        )
    return {
        "pattern": tracked.get("pattern", fields.get("pattern")),
        "read_share": tracked["read_share"],
        **values.sizes(tracked["block_size"]),
        "metric": tracked["metric"],
    }


def _until(fields: Mapping[str, Any], values: Values, track: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rule = fields["until"]["steady_state"]
    if rule["max_rounds"] < rule["window"]:
        raise UserError(f"protocol '{values.protocol}': 'max_rounds' is less than 'window'; raise it")
    return {
        "window": rule["window"],
        "max_rounds": rule["max_rounds"],
        "data_excursion": parse_share(rule["data_excursion"]),
        "slope_excursion": parse_share(rule["slope_excursion"]),
        "track": list(track),
    }


def _of_streams(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """Cells that `drivelab.protocol.trace_streams` makes of the plan's trace once that is there."""
    if "pattern" in fields:
        raise UserError(f"protocol '{values.protocol}': streams have patterns of their own; leave out the loop's")
    demand = {one: _list(fields.get(one, getattr(values, one))) for one in _DEMAND}
    track = []
    for variable in fields["until"]["steady_state"]["track"]:
        if "streams" not in variable:
            raise UserError(
                f"protocol '{values.protocol}': tracks a read share and a block size, but the cells are a trace's "
                "streams; track {streams: all, metric: iops}"
            )
        for one in _DEMAND:
            if one in variable and variable[one] not in demand[one]:
                raise UserError(
                    f"protocol '{values.protocol}': tracks {one.replace('_', ' ')} {variable[one]}, which the loop "
                    "does not have; add it to the loop's list"
                )
        track.append(dict(variable))
    streams = {
        "kind": fields["cells"]["streams"],
        "most": fields["cells"]["most"],
        **demand,
        "runtime_s": parse_duration(fields["runtime"]),
        "range_share": values.active_range,
    }
    return {"streams": streams, "until": _until(fields, values, track)}


def _list(value: Any) -> list[int]:
    return list(value) if isinstance(value, list) else [value]
