"""The cells of a loop as a protocol writes them: a grid of values, or a list of workloads with shares of the time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from drivelab.errors import UserError
from drivelab.units import parse_duration, parse_share

_PLACE = ("pattern", "read_share", "block_size_bytes", "block_size_max_bytes")
_DEMAND = ("threads", "queue_depth")
LEAST = 0.1
"""Of the loop's `runtime` that every listed cell gets, however small its share: less measures the start only."""


def loop_cells(fields: Mapping[str, Any], protocol: str) -> list[dict[str, Any]]:
    """Fields of each cell in the order of a round, those of the loop filled in, with `runtime_s`.

    Raises UserError when only some cells of a list have a share, or `pattern` stands where it means nothing.
    """
    cells, runtime_s = fields["cells"], parse_duration(fields["runtime"])
    if isinstance(cells, Mapping):
        grid = (dict(zip(cells, values, strict=True)) for values in itertools.product(*cells.values()))
        return [{**fields, **one, "runtime_s": runtime_s} for one in grid]
    if "pattern" in fields:
        raise UserError(
            f"protocol '{protocol}': the loop lists its cells, each with its 'pattern'; leave out the loop's"
        )
    times_s = _times_s(cells, runtime_s, protocol)
    return [{**fields, **one, "runtime_s": time_s} for one, time_s in zip(cells, times_s, strict=True)]


def place(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a cell of a loop, or a tracked variable, from the others that a protocol lists."""
    return tuple(cell.get(key) for key in _PLACE)


def matches(cell: Mapping[str, Any], variable: Mapping[str, Any]) -> bool:
    """Whether a tracked variable is of a cell; both are mappings as in a plan.

    `streams: all` is of every cell. Threads and depth tell cells apart where the variable names them.
    """
    if any(cell[key] != variable[key] for key in _DEMAND if key in variable):
        return False
    return "streams" in variable or place(cell) == place(variable)


def _times_s(cells: list[Mapping[str, Any]], runtime_s: float, protocol: str) -> list[float]:
    """A round takes as long as if each cell had `runtime_s`; shares divide it, whatever they add up to."""
    shares = [parse_share(one["share"]) for one in cells if "share" in one]
    if not shares:
        return [runtime_s] * len(cells)
    if len(shares) < len(cells) or not min(shares) > 0:
        raise UserError(f"protocol '{protocol}': a cell of the loop has no share of the time; give all or none one")
    times_s = (runtime_s * len(cells) * share / sum(shares) for share in shares)
    return [round(max(time_s, LEAST * runtime_s), 3) for time_s in times_s]
