"""Resolve one cell of a protocol into base units."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from drivelab.core.units import parse_share, parse_size
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import InexpressibleError, refuse_inexpressible
from drivelab.plan.value_types import (
    OF_A_POINT,
    MisfitError,
    Values,
    active_range,
    at,
    block_sizes,
    duration_s,
    fraction,
    has_each,
    must_add_up,
    share_of,
)
from drivelab.plan.yaml_file import Keys

_NEEDED = ("pattern", "read_share", "block_size")
_UNCHANGED = (
    "segments", "title", "operation", "synchronous", "registered", "batch", "polled", "nvme",
    "reuse_buffers",
)  # fmt: skip
_WRITTEN_AS: dict[str | int, str] = {
    "block_sizes": "block_size",
    "zones": "access",
    "range_share": "range",
    "zipf": "access",
    "alignment_bytes": "align",
    "alignment_offset_bytes": "alignment_offset",
    "volume_bytes": "volume",
}
"""Protocol names of those fields of a plan's cell, and of their entries, that have other names in a protocol."""
_LEAST_BLOCK_BYTES = 512


def cell(
    fields: Mapping[str, Any], values: Values, runtime_s: float | None, defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the cell of a plan for `fields`, in which `each` is already replaced.

    Precedence: `fields`, their workload, `defaults`, the class. Threads and queue depth that come from a point are None
    and are left out. Raises MisfitError for fields that contradict each other.
    """
    named: Mapping[str, Any] = {}
    if "workload" in fields:
        with at("workload"):
            named = values.workload(fields["workload"])
    all_fields = {**(defaults or {}), **named, **fields}
    for key in _NEEDED:
        if key not in all_fields:
            raise MisfitError(f"'{key}' is missing")
    demand = {key: all_fields.get(key, getattr(values, key)) for key in OF_A_POINT}
    known: dict[str, Any] = {key: 1 if value is None else value for key, value in demand.items()}
    span = _span(all_fields) if "active_range" in all_fields else values.active_range
    resolved = Cell(
        pattern=all_fields["pattern"],
        read_share=all_fields["read_share"],
        runtime_s=runtime_s,
        **{**known, **_sizes(all_fields), **_optional(all_fields), **span},
    )
    try:
        refuse_inexpressible(resolved)
    except InexpressibleError as error:
        raise MisfitError(str(error), _origin(error.keys, resolved, fields, named)) from None
    return {key: value for key, value in resolved.to_mapping().items() if demand.get(key, value) is not None}


def check_workload(fields: Mapping[str, Any]) -> None:
    """Raise MisfitError for an invalid workload. Cells that use it check its `each` fields."""
    known = {key: value for key, value in fields.items() if not has_each(value)}
    if "block_size" in known:
        _sizes(known)
    if "active_range" in known:
        _span(known)
    _optional(known)


def _origin(keys: Keys, resolved: Cell, fields: Mapping[str, Any], named: Mapping[str, Any]) -> Keys:
    """Return the keys in a protocol's cell that gave the plan's cell a value."""
    if not keys:
        return ()
    key = _WRITTEN_AS.get(keys[0], str(keys[0]))
    if key not in fields:
        return ("workload",) if key in named else ()
    if len(keys) == 1:
        return (key,)
    if key == "access":
        return (key, keys[1], _WRITTEN_AS.get(keys[2], keys[2]))
    size = (resolved.block_sizes or ())[int(keys[1])]["block_size_bytes"]
    return (key, next(text for text in fields[key] if parse_size(text) == size))


def _sizes(fields: Mapping[str, Any]) -> dict[str, Any]:
    with at("block_size"):
        return block_sizes(fields["block_size"])


def _span(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    with at("active_range"):
        return active_range(fields["active_range"])


def _optional(fields: Mapping[str, Any]) -> dict[str, Any]:
    resolved: dict[str, Any] = {key: fields[key] for key in _UNCHANGED if key in fields}
    for key, resolve in _RESOLVERS.items():
        if key in fields:
            with at(key):
                resolved.update(resolve(fields[key]))
    if "entropy" in fields:
        resolved["entropy"] = share_of(fields, "entropy", zero=True)
    if "slice" in fields:
        resolved["slice_s"] = duration_s(fields, "slice")
    return resolved


def _access(wanted: Mapping[str, Any] | list[Mapping[str, str]]) -> dict[str, Any]:
    if isinstance(wanted, Mapping):
        return {"zipf": float(wanted["zipf"])}
    zones = tuple({"range_share": fraction(zone["range"]), "share": fraction(zone["share"])} for zone in wanted)
    must_add_up({(index, "range"): zone["range_share"] for index, zone in enumerate(zones)}, "ranges of the zones")
    must_add_up({(index, "share"): zone["share"] for index, zone in enumerate(zones)}, "shares of the zones")
    return {"zones": zones}


def _whole_blocks(wanted: str) -> int:
    size = parse_size(wanted)
    if size % _LEAST_BLOCK_BYTES:
        raise MisfitError(f"{wanted} is not a multiple of 512 B, the smallest block of a drive; choose a multiple")
    return size


def _beside(wanted: Mapping[str, Any] | list[Mapping[str, Any]]) -> dict[str, Any]:
    return {"beside": tuple(map(_other, [wanted] if isinstance(wanted, Mapping) else wanted))}


def _other(wanted: Mapping[str, Any]) -> dict[str, Any]:
    if None in wanted.values():
        raise MisfitError("a point applies only to the cell, not to the workload beside it; give numbers")
    if ("operation" in wanted) == ("read_share" in wanted):
        raise MisfitError("a workload beside the cell needs either a 'read_share' or 'operation: trim'")
    derived: dict[str, Any] = {"block_size_bytes": parse_size(wanted["block_size"])}
    if "operation" in wanted:
        derived["read_share"] = 0
    if "rate_iops" in wanted:
        derived["rate_iops"] = float(wanted["rate_iops"])
    if "active_range" in wanted:
        derived |= _span(wanted)
    return {**{key: value for key, value in wanted.items() if key not in ("block_size", "active_range")}, **derived}


_RESOLVERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "access": _access,
    "align": lambda wanted: {"alignment_bytes": _whole_blocks(wanted)},
    "alignment_offset": lambda wanted: {"alignment_offset_bytes": _whole_blocks(wanted)},
    "rate_iops": lambda wanted: {"rate_iops": float(wanted)},
    "volume": lambda wanted: {"volume_bytes": parse_size(wanted)},
    "beside": _beside,
}


SWEPT = (
    "workload", "pattern", "read_share", "block_size", "threads", "queue_depth", "active_range",
    "segments", "align", "alignment_offset", "rate_iops", "entropy",
)  # fmt: skip
"""Fields of a cell that may be lists of values."""
LEAST = 0.1
"""Minimum runtime of a listed cell as a fraction of the loop's `runtime`: less would measure only the start."""
_IDENTIFYING = ("pattern", "read_share", "threads", "queue_depth")
_TIME_KEYS = ("runtime", "share")


def loop_cells(fields: Mapping[str, Any]) -> list[tuple[Keys, dict[str, Any], float]]:
    """Return keys in the loop, fields and runtime in seconds of each cell of a round.

    Raises MisfitError if only some cells of a list have a share.
    """
    cells, runtime_s = fields["cells"], duration_s(fields, "runtime")
    if isinstance(cells, Mapping):
        return [(("cells",), cell, runtime_s) for cell in combinations(cells)]
    expanded: list[tuple[Keys, dict[str, Any]]] = [
        (("cells", index), cell) for index, entry in enumerate(cells) for cell in combinations(entry)
    ]
    times_s = _times_s(expanded, runtime_s)
    return [
        (keys, {key: value for key, value in cell.items() if key not in _TIME_KEYS}, time_s)
        for (keys, cell), time_s in zip(expanded, times_s, strict=True)
    ]


def combinations(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all combinations of the fields that are lists. The first key varies slowest."""
    swept = [key for key in fields if key in SWEPT and isinstance(fields[key], list)]
    for values in itertools.product(*(fields[key] for key in swept)):
        yield {**fields, **dict(zip(swept, values, strict=True))}


def matches(cell: Mapping[str, Any], variable: Mapping[str, Any]) -> bool:
    """Return whether a tracked variable, or a point's `of`, selects a cell.

    Both are mappings as in a plan. Keys that the variable leaves out match any cell, so `streams: all` matches every
    cell. A block size does not match a cell with another range of sizes or with a distribution of sizes.
    """
    if any(cell.get(key) != variable[key] for key in _IDENTIFYING if key in variable):
        return False
    if variable.get("alignment_offset_bytes", offset := cell.get("alignment_offset_bytes", 0)) != offset:
        return False
    if "block_size_bytes" not in variable:
        return True
    sizes = ("block_size_bytes", "block_size_max_bytes")
    return "block_sizes" not in cell and all(cell.get(key) == variable.get(key) for key in sizes)


def _times_s(cells: Sequence[tuple[Keys, Mapping[str, Any]]], runtime_s: float) -> list[float]:
    """Return each cell's runtime. Shares, with any sum, divide a round of `runtime_s` per cell."""
    shared = any("share" in cell for _, cell in cells)
    weights = []
    for keys, cell in cells:
        with at(*keys):
            weights.append(_share(cell) if shared else duration_s(cell, "runtime") if "runtime" in cell else runtime_s)
    if not shared:
        return weights
    times_s = (runtime_s * len(cells) * share / sum(weights) for share in weights)
    return [round(max(time_s, LEAST * runtime_s), 3) for time_s in times_s]


def _share(cell: Mapping[str, Any]) -> float:
    if "share" not in cell:
        raise MisfitError("a cell of the loop has no 'share'; give one to all cells or to none")
    if "runtime" in cell:
        raise MisfitError(
            "a cell has a 'runtime', but the cells have a 'share'; give all cells one or the other", ("runtime",)
        )
    if not (share := parse_share(cell["share"])) > 0:
        raise MisfitError("a cell of the loop has a share of 0%; give it more than 0%", ("share",))
    return share
