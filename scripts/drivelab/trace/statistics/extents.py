"""Ranges of whole numbers (blocks, words of blocks): their union, and their members piece by piece."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.trace.statistics.batch import Ints
from drivelab.trace.statistics.bins import whole_sum

PIECE = 1 << 18
"""Members held in memory at a time, however long the ranges are."""


def distinct(*parts: Ints) -> Ints:
    """The values of all parts, each once, ascending; numpy.unique hashes, which is slow and large for so many."""
    values = np.concatenate(parts)
    values.sort()
    new = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def union(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Disjoint ranges in ascending order with the same members; ends are inclusive."""
    if not first.size:
        return first, last
    order = np.argsort(first)
    first, reach = first[order], np.maximum.accumulate(last[order])
    begins = np.concatenate([[True], first[1:] > reach[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return first[begins], reach[ends]


def size(first: Ints, last: Ints) -> int:
    """Members of all ranges, those of overlapping ones as often as they come; exact beyond 64 bits."""
    return whole_sum(last - first) + int(first.size)


def members(first: Ints, last: Ints, piece: int = PIECE) -> Iterator[tuple[Ints, Ints]]:
    """Pieces of (number of the range, member), range by range and ascending within each."""
    after: Ints = np.cumsum(last - first + 1)
    total = int(after[-1]) if after.size else 0
    for low in range(0, total, piece):
        place = np.arange(low, min(low + piece, total), dtype=np.int64)
        ranges = np.asarray(np.searchsorted(after, place, side="right"), np.int64)
        yield ranges, last[ranges] - (after[ranges] - 1 - place)
