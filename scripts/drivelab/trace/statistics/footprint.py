"""Track touched blocks exactly, in a bitmap over touched parts of the device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from drivelab.trace.statistics.batch import READ, WRITE, Batch, Ints, Words
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
    """Return the total length of all ranges, overlaps counted repeatedly. Exact beyond 64 bits."""
    return whole_sum(last - first) + int(first.size)


def members(first: Ints, last: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield pieces of (range number, member), ascending within each range."""
    after: Ints = np.cumsum(last - first + 1)
    total = int(after[-1]) if after.size else 0
    for low in range(0, total, PIECE):
        place = np.arange(low, min(low + PIECE, total), dtype=np.int64)
        ranges = np.asarray(np.searchsorted(after, place, side="right"), np.int64)
        yield ranges, last[ranges] - (after[ranges] - 1 - place)


BLOCK_SHIFT = 12
WORD_SHIFT = 6
"""A word of the bitmap covers 64 blocks: 256 KiB."""
MOST_WORDS = 1 << 22
"""Most touched words, anywhere on the device: 1 TiB in 4 KiB blocks; four arrays of 32 MiB."""
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


class TouchedWords:
    """Numbers of the words that a trace touches, collected batch by batch.

    Blocks have 4 KiB. If that takes more than MOST_WORDS words, blocks have the smallest sufficient power of two. The
    order of the requests does not matter.
    """

    def __init__(self) -> None:
        self.block_shift = BLOCK_SHIFT
        self._known = np.zeros(0, np.int64)
        self._new: list[Ints] = []

    @property
    def block_bytes(self) -> int:
        return 1 << self.block_shift

    def add(self, batch: Batch) -> None:
        moved = batch.transfers
        shift = self.block_shift + WORD_SHIFT
        first, last = union(batch.offset_bytes[moved] >> shift, (batch.end_bytes[moved] - 1) >> shift)
        while size(first, last) > MOST_WORDS:
            self._coarsen()
            first, last = union(first >> 1, last >> 1)
        self._new += [words for _, words in members(first, last)]
        if sum(map(len, self._new)) > max(1 << 19, self._known.size // 2):
            self._merge()

    def words(self) -> Ints:
        """Return the word numbers, ascending; this makes `block_shift` final."""
        self._merge()
        return self._known

    def _merge(self) -> None:
        self._known = distinct(self._known, *self._new)
        self._new = []
        while self._known.size > MOST_WORDS:
            self._coarsen()

    def _coarsen(self) -> None:
        self.block_shift += 1
        self._known = distinct(self._known >> 1, *(words >> 1 for words in self._new))
        self._new = []


@dataclass
class Touched:
    """Blocks touched for the first time."""

    blocks: int = 0
    read_blocks: int = 0
    write_blocks: int = 0
    interval_blocks: int = 0
    """In the interval since `Footprint.begin_interval`."""


class Footprint:
    """The blocks read and written so far, and in the current interval."""

    def __init__(self, touched: TouchedWords) -> None:
        self._words = touched.words()
        self.block_shift = touched.block_shift
        self._done = {direction: np.zeros(self._words.size, np.uint64) for direction in (READ, WRITE)}
        self._interval = np.zeros(self._words.size, np.uint64)

    def begin_interval(self) -> None:
        self._interval.fill(0)

    def add(self, batch: Batch, rows: slice) -> Touched:
        """Add rows of a batch; return the newly touched blocks."""
        touched = Touched()
        for direction in (READ, WRITE):
            moved = batch.transfers[rows] & (batch.operation[rows] == direction)
            first = batch.offset_bytes[rows][moved] >> self.block_shift
            last = (batch.end_bytes[rows][moved] - 1) >> self.block_shift
            self._mark(*union(first, last), direction, touched)
        return touched

    def _mark(self, first: Ints, last: Ints, direction: int, touched: Touched) -> None:
        for ranges, words in members(first >> WORD_SHIFT, last >> WORD_SHIFT):
            low, high = first[ranges], last[ranges]
            bits = np.where(words == low >> WORD_SHIFT, _ALL << (low & 63).astype(np.uint64), _ALL)
            bits &= np.where(words == high >> WORD_SHIFT, _ALL >> (63 - (high & 63)).astype(np.uint64), _ALL)
            begins = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
            bits = np.bitwise_or.reduceat(bits, begins)
            at = np.searchsorted(self._words, words[begins])
            marked, other = self._done[direction][at], self._done[READ + WRITE - direction][at]
            touched.blocks += _count(bits & ~(marked | other))
            new = _count(bits & ~marked)
            touched.read_blocks += new if direction == READ else 0
            touched.write_blocks += new if direction == WRITE else 0
            touched.interval_blocks += _count(bits & ~self._interval[at])
            self._done[direction][at] = marked | bits
            self._interval[at] |= bits


def _count(bits: Words) -> int:
    return int(np.bitwise_count(bits).sum())
