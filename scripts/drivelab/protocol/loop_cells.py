"""Expand a loop's cells into all combinations of their lists of values."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from drivelab.config.yaml_file import Keys
from drivelab.protocol.misfit import MisfitError, at
from drivelab.protocol.values import duration_s
from drivelab.units import parse_share

SWEPT = (
    "workload", "pattern", "read_share", "block_size", "threads", "queue_depth", "segments", "align",
    "alignment_offset", "rate_iops", "entropy",
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
    """Yield all combinations of the fields that are lists.

    The first key varies slowest.
    """
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
    """Return each cell's runtime.

    Shares, with any sum, divide a round of `runtime_s` per cell.
    """
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
