"""Resolve the condition of a drive before its measurement into base units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.values import duration_s, share_of
from drivelab.units import parse_size

_DEFAULT_DEPTH = 32
_MULTIPLES = ("capacity_multiple", "raw_capacity_multiple")


def condition(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the condition for a plan.

    Raises MisfitError for a pass without an amount to write.
    """
    resolved: dict[str, Any] = {"purge": fields["purge"]}
    if fields.get("scenario") == "required":
        resolved["scenario_required"] = True
    for key in ("settle", "rest"):
        if key in fields:
            resolved[f"{key}_s"] = duration_s(fields, key)
    if "fill" in fields:
        with at("fill"):
            resolved["fill"] = _passes(fields["fill"])
    return resolved


def _passes(fill: Mapping[str, Any] | list[Mapping[str, Any]]) -> dict[str, Any] | list[dict[str, Any]]:
    if isinstance(fill, Mapping):
        return _pass(fill)
    resolved = []
    for index, fields in enumerate(fill):
        with at(index):
            resolved.append(_pass(fields))
    return resolved


def _pass(fields: Mapping[str, Any]) -> dict[str, Any]:
    multiples = {key: fields[key] for key in _MULTIPLES if key in fields}
    if len(multiples) != 1:
        raise MisfitError("needs either 'capacity_multiple' or 'raw_capacity_multiple'; give exactly one")
    with at("block_size"):
        size = parse_size(fields["block_size"])
    return {
        "pattern": fields["pattern"],
        "block_size_bytes": size,
        **multiples,
        "queue_depth": fields.get("queue_depth", _DEFAULT_DEPTH),
        **({"range_share": share_of(fields, "range")} if "range" in fields else {}),
    }
