"""Which blocks are followed one by one: all of them, or one of each group of neighbours when they are too many.

Sampling by place keeps every access to a followed block, so that reuse and its distances stay true, as SHARDS does
(Waldspurger et al., FAST 2015). One block of each aligned group of 2**k is drawn by a hash, so the sample is spread
evenly, and the sample of a larger k is part of that of a smaller one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.trace.statistics import extents
from drivelab.trace.statistics.batch import Batch, Flags, Ints
from drivelab.trace.statistics.footprint import BLOCK_SHIFT

MOST_BLOCKS = 1 << 21
"""Blocks followed at most: 8 GiB of 4 KiB blocks, in about 50 MB."""
TOUCHES_PER_REQUEST = 3
LEAST_TOUCHES = 1 << 24
"""Accesses to groups that are looked at, at most: so many in all, or TOUCHES_PER_REQUEST for long traces."""


class Sample:
    """The blocks of 4 KiB that are followed, gathered batch by batch from `requests` requests in all.

    `level` is k, the least that keeps both limits, whatever the order of the requests: one block of 2**k is followed.
    """

    block_bytes = 1 << BLOCK_SHIFT

    def __init__(self, requests: int) -> None:
        self.level = 0
        self._most_touches = max(LEAST_TOUCHES, TOUCHES_PER_REQUEST * requests)
        self._touches = 0
        self._requests = 0
        self._known = np.zeros(0, np.int64)
        self._new: list[Ints] = []

    @property
    def share(self) -> float:
        """Of all blocks."""
        return 0.5**self.level

    def add(self, batch: Batch) -> None:
        first, last = _blocks(batch)
        self._touches += extents.size(first, last)
        self._requests += int(first.size)
        while self._work() > self._most_touches:
            self._coarsen()
        level = self.level
        for _, blocks in touches(first, last, level):
            for step in range(level + 1, self.level + 1):  # coarsened by an earlier piece
                blocks = blocks[_drawn(blocks, step)]
            self._new.append(extents.distinct(blocks))
            if sum(map(len, self._new)) > max(1 << 19, self._known.size // 2):
                self._merge()

    def blocks(self) -> Ints:
        """Numbers of the followed blocks that were touched, ascending; only now `level` is final."""
        self._merge()
        return self._known

    def _work(self) -> int:
        """Groups that the requests so far reach into, at most."""
        return self._touches if not self.level else self._requests + (self._touches >> self.level)

    def _merge(self) -> None:
        self._known = extents.distinct(self._known, *self._new)
        self._new = []
        while self._known.size > MOST_BLOCKS:
            self._coarsen()

    def _coarsen(self) -> None:
        self.level += 1
        known = extents.distinct(self._known, *self._new)
        self._known, self._new = known[_drawn(known, self.level)], []


def _blocks(batch: Batch) -> tuple[Ints, Ints]:
    """First and last block of each read or write of some length."""
    moved = batch.transfers
    return batch.offset_bytes[moved] >> BLOCK_SHIFT, (batch.end_bytes[moved] - 1) >> BLOCK_SHIFT


def touches(first: Ints, last: Ints, level: int) -> Iterator[tuple[Ints, Ints]]:
    """Pieces of (number of the range of blocks, followed block that it touches), range by range."""
    for ranges, groups in extents.members(first >> level, last >> level):
        if level:
            blocks = _descend(groups, level)
            inside = (first[ranges] <= blocks) & (blocks <= last[ranges])
            yield ranges[inside], blocks[inside]
        else:
            yield ranges, groups


def _descend(groups: Ints, level: int) -> Ints:
    """The followed block of each group of 2**level."""
    for step in range(level, 0, -1):
        groups = groups * 2 + _bit(groups, step)
    return groups


def _drawn(blocks: Ints, step: int) -> Flags:
    """Whether blocks followed at the level before `step` are followed there too."""
    return np.asarray((blocks >> (step - 1) & 1) == _bit(blocks >> step, step), np.bool_)


def _bit(groups: Ints, step: int) -> Ints:
    """Which half of a group is followed, 0 or 1, by the finaliser of MurmurHash3 (Appleby)."""
    mixed = groups.astype(np.uint64) + np.uint64(step * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return (mixed >> np.uint64(63)).astype(np.int64)
