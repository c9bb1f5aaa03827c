"""The loop step resolved: its cells, their order, and what ends it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.plan.cell import Cell
from drivelab.plan.plan import canonical
from drivelab.protocol.cells import cell
from drivelab.protocol.loop_cells import loop_cells, matches
from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.stop_rules import excursions, repeats
from drivelab.protocol.values import Values, block_sizes, duration_s, share_of
from drivelab.units import parse_size

_DEMAND = ("threads", "queue_depth")
_DEFAULTS = ("pattern", *_DEMAND)
_WORDS = {"pattern": "{} access", "read_share": "read share {}", "block_size": "block size {}",
          "threads": "{} threads", "queue_depth": "queue depth {}", "alignment_offset": "unaligned by {}"}  # fmt: skip


def loop(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """The step for a plan: `cells`, or `streams` where they come from a trace, `until`, and what there is beside.

    Raises MisfitError when the criterion does not fit the cells.
    """
    wanted = fields["cells"]
    found = _of_streams(fields, values) if _takes_streams(wanted) else _of_cells(fields, values)
    if fields.get("order", "rounds") == "cells":
        if "steady_state" in fields["until"]:
            raise MisfitError("steady_state is of whole rounds; take another rule in 'until'", ("order",))
        found["order"] = "cells"
    if fields.get("cold_rounds", 0):
        found["cold_rounds"] = fields["cold_rounds"]
    if "pause" in fields and "duty_cycle" in fields:
        raise MisfitError("both 'pause' and 'duty_cycle' say how long the drive is idle; give one", ("duty_cycle",))
    if "pause" in fields:
        found["pause_s"] = duration_s(fields, "pause")
    if "duty_cycle" in fields:
        found["duty_cycle"] = share_of(fields, "duty_cycle")
    return found


def _takes_streams(cells: Any) -> bool:
    return isinstance(cells, Mapping) and "streams" in cells


def _of_cells(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    for key in _DEMAND:
        if isinstance(fields.get(key), list):
            raise MisfitError("is a list, which belongs into 'cells'; give a number here", (key,))
    if "pattern" in fields and isinstance(fields["cells"], list):
        raise MisfitError("the loop lists its cells, each with its 'pattern'; leave out the loop's", ("pattern",))
    defaults = {key: fields[key] for key in _DEFAULTS if key in fields}
    cells: dict[str, dict[str, Any]] = {}
    for keys, one, runtime_s in loop_cells(fields):
        with at(*keys):
            made = cell(one, values, runtime_s, defaults)
            alike = canonical({**made, "runtime_s": None})
            if alike in cells:
                raise MisfitError(f"the loop has {_label(made)} twice; leave one out")
            cells[alike] = made
    return {"cells": list(cells.values()), "until": _until(fields, list(cells.values()))}


def _until(fields: Mapping[str, Any], cells: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """`cells` are None where they are a trace's streams."""
    with at("until"):
        if "steady_state" not in fields["until"]:
            return repeats(fields["until"])
        with at("steady_state"):
            rule = fields["until"]["steady_state"]
            if rule["max_rounds"] < rule["window"]:
                raise MisfitError("'max_rounds' is less than 'window'; raise it", ("max_rounds",))
            return {**excursions(rule), "max_rounds": rule["max_rounds"], "track": _track(rule, fields, cells)}


def _track(
    rule: Mapping[str, Any], fields: Mapping[str, Any], cells: Sequence[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    found = []
    for index, one in enumerate(rule["track"]):
        with at("track", index):
            if cells is None:
                _check_tracked_stream(one, fields)
                found.append(dict(one))
                continue
            if "streams" in one:
                raise MisfitError("tracks streams, but the loop has no cells of 'streams'; track a read share")
            variable = place({"pattern": fields["pattern"], **one} if "pattern" in fields else one)
            _refuse_other_than_one(one, [cell for cell in cells if matches(cell, variable)])
            found.append({**variable, "metric": one["metric"]})
    return found


def place(fields: Mapping[str, Any]) -> dict[str, Any]:
    """What tells cells apart, of the fields of a tracked variable or those that points are chosen of, as in a plan."""
    found = {key: fields[key] for key in ("pattern", "read_share", *_DEMAND) if key in fields}
    if "alignment_offset" in fields:
        found["alignment_offset_bytes"] = parse_size(fields["alignment_offset"])
    if "block_size" in fields:
        with at("block_size"):
            found.update(block_sizes(fields["block_size"]))
    return found


def words(fields: Mapping[str, Any]) -> str:
    """What tells cells apart, for people."""
    return ", ".join(text.format(fields[key]) for key, text in _WORDS.items() if key in fields)


def _refuse_other_than_one(wanted: Mapping[str, Any], found: Sequence[Mapping[str, Any]]) -> None:
    if not found:
        raise MisfitError(f"tracks {words(wanted)}, which is no cell of the loop; add it to the cells")
    if len(found) > 1:
        names = ", ".join(map(_label, found[:3])) + (", ..." if len(found) > 3 else "")
        raise MisfitError(
            f"tracks {words(wanted)}, which are {len(found)} cells of the loop ({names}); "
            "say which by pattern, block_size, threads, queue_depth or alignment_offset"
        )


def _label(cell: Mapping[str, Any]) -> str:
    """Its name, also where threads and depth are left to a point."""
    return Cell(**{"threads": 1, "queue_depth": 1, **cell}).label


def _of_streams(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """Cells that `drivelab.protocol.trace_streams` makes of the plan's trace once that is there."""
    if "pattern" in fields:
        raise MisfitError("streams have patterns of their own; leave out the loop's", ("pattern",))
    if "range_bytes" in values.active_range:
        raise MisfitError("streams take a share of the drive; make the class's 'active_range' one", ("cells",))
    streams = {
        "kind": fields["cells"]["streams"],
        "most": fields["cells"]["most"],
        **{one: _list(fields.get(one, getattr(values, one))) for one in _DEMAND},
        "runtime_s": duration_s(fields, "runtime"),
        "range_share": values.active_range["range_share"],
    }
    asked = {**fields, **{one: streams[one] for one in _DEMAND}}
    return {"streams": streams, "until": _until(asked, None)}


def _check_tracked_stream(variable: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    if "streams" not in variable or not {*variable} <= {"streams", "metric", *_DEMAND}:
        raise MisfitError(
            "tracks a read share and a block size, but the cells are a trace's streams; "
            "track {streams: all, metric: iops}"
        )
    for one in _DEMAND:
        if one in variable and variable[one] not in fields[one]:
            raise MisfitError(
                f"tracks {one.replace('_', ' ')} {variable[one]}, which the loop does not have; add it to its list"
            )


def _list(value: Any) -> list[int]:
    return list(value) if isinstance(value, list) else [value]
