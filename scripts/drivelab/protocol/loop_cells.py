"""The cells of a loop as a protocol writes them: lists of values of which all combinations are meant."""

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
"""Of the loop's `runtime` that every listed cell gets, however small its share: less measures the start only."""
_TOLD_BY = ("pattern", "read_share", "threads", "queue_depth")
_OF_THE_TIME = ("runtime", "share")


def loop_cells(fields: Mapping[str, Any]) -> list[tuple[Keys, dict[str, Any], float]]:
    """Each cell in the order of a round: the keys that lead to it in the loop, its fields, its runtime in seconds.

    Raises MisfitError when only some cells of a list have a share.
    """
    cells, runtime_s = fields["cells"], duration_s(fields, "runtime")
    if isinstance(cells, Mapping):
        return [(("cells",), one, runtime_s) for one in combinations(cells)]
    found: list[tuple[Keys, dict[str, Any]]] = [
        (("cells", index), one) for index, entry in enumerate(cells) for one in combinations(entry)
    ]
    times_s = _times_s(found, runtime_s)
    return [
        (keys, {key: value for key, value in one.items() if key not in _OF_THE_TIME}, time_s)
        for (keys, one), time_s in zip(found, times_s, strict=True)
    ]


def combinations(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All combinations of the fields that are lists of values, in the order of the keys, the first key outermost."""
    swept = [key for key in fields if key in SWEPT and isinstance(fields[key], list)]
    for values in itertools.product(*(fields[key] for key in swept)):
        yield {**fields, **dict(zip(swept, values, strict=True))}


def matches(cell: Mapping[str, Any], variable: Mapping[str, Any]) -> bool:
    """Whether a tracked variable, or what a point is chosen of, is of a cell; both are mappings as in a plan.

    Keys that the variable does not have match any cell; so `streams: all` is of every cell. A block size is not of a
    cell with another range of sizes, nor of one with a distribution of sizes.
    """
    if any(cell.get(key) != variable[key] for key in _TOLD_BY if key in variable):
        return False
    if variable.get("alignment_offset_bytes", offset := cell.get("alignment_offset_bytes", 0)) != offset:
        return False
    if "block_size_bytes" not in variable:
        return True
    sizes = ("block_size_bytes", "block_size_max_bytes")
    return "block_sizes" not in cell and all(cell.get(key) == variable.get(key) for key in sizes)


def _times_s(cells: Sequence[tuple[Keys, Mapping[str, Any]]], runtime_s: float) -> list[float]:
    """A round takes as long as if each cell had `runtime_s`; shares divide it, whatever they add up to."""
    shared = any("share" in one for _, one in cells)
    weights = []
    for keys, one in cells:
        with at(*keys):
            weights.append(_share(one) if shared else duration_s(one, "runtime") if "runtime" in one else runtime_s)
    if not shared:
        return weights
    times_s = (runtime_s * len(cells) * share / sum(weights) for share in weights)
    return [round(max(time_s, LEAST * runtime_s), 3) for time_s in times_s]


def _share(cell: Mapping[str, Any]) -> float:
    if "share" not in cell:
        raise MisfitError("a cell of the loop has no share of the time; give all or none one")
    if "runtime" in cell:
        raise MisfitError(
            "a cell has a 'runtime' where cells have shares of the time; give cells the one or the other", ("runtime",)
        )
    if not (share := parse_share(cell["share"])) > 0:
        raise MisfitError("a cell of the loop has no share of the time; give it more than 0%", ("share",))
    return share
