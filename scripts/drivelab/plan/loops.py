"""Resolve the loop step (cells, order, stop rule) and the load step (rising rates of requests, until a limit)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from drivelab.core.units import parse_share, parse_size
from drivelab.plan.cell import Cell
from drivelab.plan.loop_cells import cell, loop_cells, matches
from drivelab.plan.plan import canonical
from drivelab.plan.value_types import MisfitError, Values, at, block_sizes, duration_s, share_of


def excursions(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return window and excursions of a steady state. Excursions above 100 % of the mean are permitted."""
    return {
        "window": rule["window"],
        "data_excursion": parse_share(rule["data_excursion"]),
        "slope_excursion": parse_share(rule["slope_excursion"]),
    }


def repeats(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return the stop rule for `rounds`, `passes` or a relative standard error."""
    if "relative_standard_error" not in rule:
        return dict(rule)
    wanted = rule["relative_standard_error"]
    with at("relative_standard_error"):
        return {"threshold": share_of(wanted, "threshold"), "metric": wanted["metric"]}


def steady_soak(rule: Mapping[str, Any], slice_s: float) -> dict[str, Any]:
    """Return the steady-state rule of a soak. Raises MisfitError if its spans are not whole slices."""
    every_s = duration_s(rule, "every") if "every" in rule else slice_s
    slices = every_s / slice_s
    if round(slices) < 1 or abs(slices - round(slices)) > 1e-6:
        raise MisfitError(
            f"its spans of {every_s:g} s are not a multiple of the slice of {slice_s:g} s; change 'every' or 'slice'"
        )
    return {"every_s": every_s, **excursions(rule), "metric": rule["metric"]}


_DEMAND = ("threads", "queue_depth")
_DEFAULTS = ("pattern", *_DEMAND)
_PHRASES = {"pattern": "{} access", "read_share": "read share {}", "block_size": "block size {}",
          "threads": "{} threads", "queue_depth": "queue depth {}", "alignment_offset": "unaligned by {}"}  # fmt: skip


def loop(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """Return the step for a plan, with `cells` or `streams`, and `until`.

    Raises MisfitError if the stop rule does not match the cells.
    """
    step = _with_streams(fields, values) if _takes_streams(fields["cells"]) else _with_cells(fields, values)
    if fields.get("order", "rounds") == "cells":
        if "steady_state" in fields["until"]:
            raise MisfitError("steady_state needs whole rounds; use another rule in 'until'", ("order",))
        step["order"] = "cells"
    if fields.get("cold_rounds", 0):
        step["cold_rounds"] = fields["cold_rounds"]
    if "pause" in fields and "duty_cycle" in fields:
        raise MisfitError("both 'pause' and 'duty_cycle' set the idle time; give one", ("duty_cycle",))
    if "pause" in fields:
        step["pause_s"] = duration_s(fields, "pause")
    if "duty_cycle" in fields:
        step["duty_cycle"] = share_of(fields, "duty_cycle")
    return step


def _takes_streams(cells: Any) -> bool:
    return isinstance(cells, Mapping) and "streams" in cells


def _with_cells(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    for key in _DEMAND:
        if isinstance(fields.get(key), list):
            raise MisfitError("is a list; move it to 'cells' or give a number here", (key,))
    if "pattern" in fields and isinstance(fields["cells"], list):
        raise MisfitError(
            "the loop lists its cells, each with its 'pattern'; remove the loop's 'pattern'", ("pattern",)
        )
    defaults = {key: fields[key] for key in _DEFAULTS if key in fields}
    cells: dict[str, dict[str, Any]] = {}
    for keys, cell_fields, runtime_s in loop_cells(fields):
        with at(*keys):
            resolved = cell(cell_fields, values, runtime_s, defaults)
            identity = canonical({**resolved, "runtime_s": None})
            if identity in cells:
                raise MisfitError(f"the loop has {_label(resolved)} twice; remove one")
            cells[identity] = resolved
    return {"cells": list(cells.values()), "until": _until(fields, list(cells.values()))}


def _until(fields: Mapping[str, Any], cells: Sequence[Mapping[str, Any]] | None) -> dict[str, Any]:
    """Return the stop rule; `cells` is None if a trace's streams give them."""
    with at("until"):
        if "steady_state" not in fields["until"]:
            return repeats(fields["until"])
        with at("steady_state"):
            rule = fields["until"]["steady_state"]
            if rule["max_rounds"] < rule["window"]:
                raise MisfitError("'max_rounds' is less than 'window'; increase it", ("max_rounds",))
            return {**excursions(rule), "max_rounds": rule["max_rounds"], "track": _track(rule, fields, cells)}


def _track(
    rule: Mapping[str, Any], fields: Mapping[str, Any], cells: Sequence[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    variables = []
    for index, entry in enumerate(rule["track"]):
        with at("track", index):
            if cells is None:
                _check_tracked_stream(entry, fields)
                variables.append(dict(entry))
                continue
            if "streams" in entry:
                raise MisfitError("tracks streams, but the loop has no cells of 'streams'; track a read share")
            variable = selector({"pattern": fields["pattern"], **entry} if "pattern" in fields else entry)
            _require_one(entry, [cell for cell in cells if matches(cell, variable)])
            variables.append({**variable, "metric": entry["metric"]})
    return variables


def selector(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plan's fields of a tracked variable or point that select cells."""
    selected = {key: fields[key] for key in ("pattern", "read_share", *_DEMAND) if key in fields}
    if "alignment_offset" in fields:
        selected["alignment_offset_bytes"] = parse_size(fields["alignment_offset"])
    if "block_size" in fields:
        with at("block_size"):
            selected.update(block_sizes(fields["block_size"]))
    return selected


def description(fields: Mapping[str, Any]) -> str:
    """Return a readable description of fields that select cells."""
    return ", ".join(text.format(fields[key]) for key, text in _PHRASES.items() if key in fields)


def _require_one(wanted: Mapping[str, Any], matching: Sequence[Mapping[str, Any]]) -> None:
    if not matching:
        raise MisfitError(f"tracks {description(wanted)}, which matches no cell of the loop; add it to the cells")
    if len(matching) > 1:
        names = ", ".join(map(_label, matching[:3])) + (", ..." if len(matching) > 3 else "")
        raise MisfitError(
            f"tracks {description(wanted)}, which matches {len(matching)} cells of the loop ({names}); "
            "select one by pattern, block_size, threads, queue_depth or alignment_offset"
        )


def _label(cell: Mapping[str, Any]) -> str:
    """Return a cell's label, even if a point gives its threads and queue depth."""
    return Cell(**{"threads": 1, "queue_depth": 1, **cell}).label


def _with_streams(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """Return the step; `trace_streams` derives its cells when the trace exists."""
    if "pattern" in fields:
        raise MisfitError("each stream has its own pattern; remove the loop's 'pattern'", ("pattern",))
    if "range_bytes" in values.active_range:
        raise MisfitError(
            "streams need a share of the drive; give the class's 'active_range' as a percentage", ("cells",)
        )
    streams = {
        "kind": fields["cells"]["streams"],
        "most": fields["cells"]["most"],
        **{key: _list(fields.get(key, getattr(values, key))) for key in _DEMAND},
        "runtime_s": duration_s(fields, "runtime"),
        "range_share": values.active_range["range_share"],
    }
    demand = {key: streams[key] for key in _DEMAND}
    return {"streams": streams, "until": _until({**fields, **demand}, None)}


def _check_tracked_stream(variable: Mapping[str, Any], fields: Mapping[str, Any]) -> None:
    if "streams" not in variable or not {*variable} <= {"streams", "metric", *_DEMAND}:
        raise MisfitError(
            "tracks a read share and a block size, but the cells come from a trace's streams; "
            "track {streams: all, metric: iops}"
        )
    for key in _DEMAND:
        if key in variable and variable[key] not in fields[key]:
            raise MisfitError(
                f"tracks {key.replace('_', ' ')} {variable[key]}, which the loop does not have; add it to the loop"
            )


def _list(value: Any) -> list[int]:
    return list(value) if isinstance(value, list) else [value]


MOST_IN_FLIGHT = 4096
TRACE = "trace"
"""Arrivals with the bursts and pauses of a trace of the study."""
MOST_REQUESTS = 5_000_000
"""Largest number of requests of one measurement, which limits memory and evidence; the runtime is shorter then."""
_GRACE_S = 1.0
_OPEN_LOOP = {"threads": 1, "queue_depth": MOST_IN_FLIGHT}
"""Defaults: one thread issues, and only the engine limits the requests in flight."""
_TRIES = 3


def load(fields: Mapping[str, Any], values: Values) -> dict[str, Any]:
    """Return the step for a plan.

    `queue_depth` of its cell limits the requests in flight of all threads together. Raises MisfitError for rates out of
    order, and for a workload that is none of an open-loop load.
    """
    resolved = cell({**_OPEN_LOOP, **fields}, values, None)
    if "block_size_max_bytes" in resolved or "block_sizes" in resolved:
        raise MisfitError("a load has one block size; write it like 4KiB", ("block_size",))
    if resolved["threads"] > resolved["queue_depth"]:
        raise MisfitError("each thread needs a place in the queue; use a higher queue_depth", ("threads",))
    with at("limit"):
        response_time_s = duration_s(fields["limit"], "response_time")
        if not response_time_s > 0:
            raise MisfitError("is 0; give a time above 0", ("response_time",))
    runtime_s = duration_s(fields, "runtime")
    with at("rates"):
        rates = _rates(fields["rates"])
    return {
        "cell": resolved,
        "arrivals": fields["arrivals"],
        "limit": {"percentile": float(fields["limit"]["percentile"]), "response_time_us": response_time_s * 1e6},
        "rates": rates,
        "runtime_s": runtime_s,
        "tries": fields.get("tries", _TRIES),
    }


def _rates(fields: Mapping[str, Any]) -> dict[str, float]:
    if fields["most"] < fields["start"]:
        raise MisfitError("is below 'start'; give a higher rate", ("most",))
    return {
        "start_iops": float(fields["start"]),
        "factor": float(fields["factor"]),
        "resolution": share_of(fields, "resolution"),
        "most_iops": float(fields["most"]),
    }


def grace_s(fields: Mapping[str, Any]) -> float:
    """Return how long requests are issued after the last one is due.

    An overloaded drive never gets to all of them. It is longer than the limit, so what is not issued has failed it.
    """
    return max(_GRACE_S, 2e-6 * float(fields["limit"]["response_time_us"]))


def load_words(fields: Mapping[str, Any]) -> str:
    """Return a load step of a plan in words, such as `RND 4KiB 70/30, poisson arrivals, p99.99 below 1 ms`."""
    arrivals, limit = fields["arrivals"], fields["limit"]
    return (
        f"{Cell(**fields['cell']).workload}, {arrivals} arrivals, "
        f"{limit_words(limit['percentile'], limit['response_time_us'])}"
    )


def limit_words(percentile: float, limit_us: float) -> str:
    """Return a limit in words, such as `p99.99 below 1 ms`."""
    return f"p{percentile:g} below {time_words(limit_us)}"


def time_words(time_us: float) -> str:
    """Return a time with three digits, in a suitable unit."""
    if time_us < 999.5:
        return f"{time_us:.3g} µs"
    return f"{time_us / 1e3:.3g} ms" if time_us < 999.5e3 else f"{time_us / 1e6:.3g} s"
