"""Resolve one cell of a protocol into base units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from drivelab.config.yaml_file import Keys
from drivelab.fio.expressible import InexpressibleError, refuse_inexpressible
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
_UNCHANGED = ("segments", "title")
_WRITTEN_AS: dict[str | int, str] = {
    "block_sizes": "block_size",
    "zones": "access",
    "range_share": "range",
    "zipf": "access",
    "alignment_bytes": "align",
    "alignment_offset_bytes": "alignment_offset",
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
    """Raise MisfitError for an invalid workload.

    Cells that use it check its `each` fields.
    """
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


def _beside(wanted: Mapping[str, Any]) -> dict[str, Any]:
    if None in wanted.values():
        raise MisfitError("a point applies only to the cell, not to the workload beside it; give numbers")
    sizes = {"block_size_bytes": parse_size(wanted["block_size"])}
    return {"beside": {**{key: value for key, value in wanted.items() if key != "block_size"}, **sizes}}


_RESOLVERS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "access": _access,
    "align": lambda wanted: {"alignment_bytes": _whole_blocks(wanted)},
    "alignment_offset": lambda wanted: {"alignment_offset_bytes": _whole_blocks(wanted)},
    "rate_iops": lambda wanted: {"rate_iops": float(wanted)},
    "beside": _beside,
}
