"""Which blocks reads and writes touched: exact, by a bitmap over the touched parts of the device."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from drivelab.trace.statistics import extents
from drivelab.trace.statistics.batch import READ, WRITE, Batch, Ints

BLOCK_SHIFT = 12
WORD_SHIFT = 6
"""A word of the bitmap stands for 64 blocks: 256 KiB."""
MOST_WORDS = 1 << 22
"""Touched words, wherever on the device they lie: 1 TiB in 4 KiB blocks; four arrays of 32 MiB."""
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
Words = npt.NDArray[np.uint64]


class TouchedWords:
    """Numbers of the words that a trace touches, gathered batch by batch.

    Blocks are of 4 KiB unless that takes more than MOST_WORDS words: then they are of the least power of two that
    takes no more, whatever the order of the requests.
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
        first, last = extents.union(batch.offset_bytes[moved] >> shift, (batch.end_bytes[moved] - 1) >> shift)
        while extents.size(first, last) > MOST_WORDS:
            self._coarsen()
            first, last = extents.union(first >> 1, last >> 1)
        self._new += [words for _, words in extents.members(first, last)]
        if sum(map(len, self._new)) > max(1 << 19, self._known.size // 2):
            self._merge()

    def words(self) -> Ints:
        """In ascending order; only now `block_shift` is final."""
        self._merge()
        return self._known

    def _merge(self) -> None:
        self._known = extents.distinct(self._known, *self._new)
        self._new = []
        while self._known.size > MOST_WORDS:
            self._coarsen()

    def _coarsen(self) -> None:
        self.block_shift += 1
        self._known = extents.distinct(self._known >> 1, *(one >> 1 for one in self._new))
        self._new = []


@dataclass
class Touched:
    """Blocks touched for the first time."""

    blocks: int = 0
    read_blocks: int = 0
    write_blocks: int = 0
    interval_blocks: int = 0
    """In the interval that goes on since `Footprint.begin_interval`."""


class Footprint:
    """The blocks that were read and written so far, and in the current interval."""

    def __init__(self, touched: TouchedWords) -> None:
        self._words = touched.words()
        self.block_shift = touched.block_shift
        self._done = {direction: np.zeros(self._words.size, np.uint64) for direction in (READ, WRITE)}
        self._interval = np.zeros(self._words.size, np.uint64)

    def begin_interval(self) -> None:
        self._interval.fill(0)

    def add(self, batch: Batch, rows: slice) -> Touched:
        """Count what some rows of a batch touch."""
        found = Touched()
        for direction in (READ, WRITE):
            moved = batch.transfers[rows] & (batch.operation[rows] == direction)
            first = batch.offset_bytes[rows][moved] >> self.block_shift
            last = (batch.end_bytes[rows][moved] - 1) >> self.block_shift
            self._mark(*extents.union(first, last), direction, found)
        return found

    def _mark(self, first: Ints, last: Ints, direction: int, found: Touched) -> None:
        for ranges, words in extents.members(first >> WORD_SHIFT, last >> WORD_SHIFT):
            low, high = first[ranges], last[ranges]
            bits = np.where(words == low >> WORD_SHIFT, _ALL << (low & 63).astype(np.uint64), _ALL)
            bits &= np.where(words == high >> WORD_SHIFT, _ALL >> (63 - (high & 63)).astype(np.uint64), _ALL)
            begins = np.flatnonzero(np.concatenate([[True], words[1:] != words[:-1]]))
            bits = np.bitwise_or.reduceat(bits, begins)
            at = np.searchsorted(self._words, words[begins])
            mine, other = self._done[direction][at], self._done[READ + WRITE - direction][at]
            found.blocks += _count(bits & ~(mine | other))
            new = _count(bits & ~mine)
            found.read_blocks += new if direction == READ else 0
            found.write_blocks += new if direction == WRITE else 0
            found.interval_blocks += _count(bits & ~self._interval[at])
            self._done[direction][at] = mine | bits
            self._interval[at] |= bits


def _count(bits: Words) -> int:
    return int(np.bitwise_count(bits).sum())
