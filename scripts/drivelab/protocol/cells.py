"""One cell as a protocol describes it, in base units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drivelab.fio.expressible import refuse_inexpressible
from drivelab.plan.cell import Cell
from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.values import (
    OF_A_POINT,
    Values,
    active_range,
    block_sizes,
    duration_s,
    fraction,
    has_each,
    must_add_up,
    share_of,
)
from drivelab.units import parse_size

_NEEDED = ("pattern", "read_share", "block_size")
_AS_THEY_ARE = ("segments", "title")


def cell(
    fields: Mapping[str, Any], values: Values, runtime_s: float | None, defaults: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The cell of a plan that `fields` describe, which have no `each` any more.

    They go before those of their workload, these before `defaults`, these before the class's. Threads and queue depth
    that a point gives, which are None, are left out. Raises MisfitError for what does not fit together.
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
    found = Cell(
        pattern=all_fields["pattern"],
        read_share=all_fields["read_share"],
        runtime_s=runtime_s,
        **{**known, **_sizes(all_fields), **_optional(all_fields), **span},
    )
    with at():
        refuse_inexpressible(found)
    return {key: value for key, value in found.to_mapping().items() if demand.get(key, value) is not None}


def check_workload(fields: Mapping[str, Any]) -> None:
    """Raise MisfitError for what cannot be in a workload; what is `each` is left to the cells that name it."""
    known = {key: value for key, value in fields.items() if not has_each(value)}
    if "block_size" in known:
        _sizes(known)
    if "active_range" in known:
        _span(known)
    _optional(known)


def _sizes(fields: Mapping[str, Any]) -> dict[str, Any]:
    with at("block_size"):
        return block_sizes(fields["block_size"])


def _span(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    with at("active_range"):
        return active_range(fields["active_range"])


def _optional(fields: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {key: fields[key] for key in _AS_THEY_ARE if key in fields}
    for key, make in _MAKERS.items():
        if key in fields:
            with at(key):
                found.update(make(fields[key]))
    if "entropy" in fields:
        found["entropy"] = share_of(fields, "entropy", zero=True)
    if "slice" in fields:
        found["slice_s"] = duration_s(fields, "slice")
    return found


def _access(wanted: Mapping[str, Any] | list[Mapping[str, str]]) -> dict[str, Any]:
    if isinstance(wanted, Mapping):
        return {"zipf": float(wanted["zipf"])}
    zones = tuple({"range_share": fraction(one["range"]), "share": fraction(one["share"])} for one in wanted)
    must_add_up([one["range_share"] for one in zones], "ranges of the zones")
    must_add_up([one["share"] for one in zones], "shares of the zones")
    return {"zones": zones}


def _beside(wanted: Mapping[str, Any]) -> dict[str, Any]:
    if None in wanted.values():
        raise MisfitError("a point is of the cell and not of the workload beside it; give numbers")
    sizes = {"block_size_bytes": parse_size(wanted["block_size"])}
    return {"beside": {**{key: value for key, value in wanted.items() if key != "block_size"}, **sizes}}


_MAKERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "access": _access,
    "align": lambda wanted: {"alignment_bytes": parse_size(wanted)},
    "alignment_offset": lambda wanted: {"alignment_offset_bytes": parse_size(wanted)},
    "rate_iops": lambda wanted: {"rate_iops": float(wanted)},
    "beside": _beside,
}
