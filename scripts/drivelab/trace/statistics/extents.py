"""Ranges of whole numbers (blocks, words of blocks): union and members."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.trace.statistics.batch import Ints
from drivelab.trace.statistics.bins import whole_sum

PIECE = 1 << 18
"""Most members in memory at a time, for ranges of any length."""


def distinct(*parts: Ints) -> Ints:
    """Return the distinct values of all parts, ascending.

    numpy.unique hashes, which takes too much time and memory for so many values.
    """
    values = np.concatenate(parts)
    values.sort()
    new = np.ones(values.size, np.bool_)
    np.not_equal(values[1:], values[:-1], out=new[1:])
    return values[new]


def union(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return disjoint ascending ranges with the same members; ends are inclusive."""
    if not first.size:
        return first, last
    order = np.argsort(first)
    first, reach = first[order], np.maximum.accumulate(last[order])
    begins = np.concatenate([[True], first[1:] > reach[:-1]])
    ends = np.concatenate([begins[1:], [True]])
    return first[begins], reach[ends]


def size(first: Ints, last: Ints) -> int:
    """Return the total length of all ranges, overlaps counted repeatedly.

    Exact beyond 64 bits.
    """
    return whole_sum(last - first) + int(first.size)


def members(first: Ints, last: Ints, piece: int = PIECE) -> Iterator[tuple[Ints, Ints]]:
    """Yield pieces of (range number, member), ascending within each range."""
    after: Ints = np.cumsum(last - first + 1)
    total = int(after[-1]) if after.size else 0
    for low in range(0, total, piece):
        place = np.arange(low, min(low + piece, total), dtype=np.int64)
        ranges = np.asarray(np.searchsorted(after, place, side="right"), np.int64)
        yield ranges, last[ranges] - (after[ranges] - 1 - place)
