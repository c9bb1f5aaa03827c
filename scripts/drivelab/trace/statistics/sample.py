"""Choose the blocks to follow: all, or one of each group of neighbours.

Spatial sampling keeps every access to a followed block, so reuse and distances stay correct, as in SHARDS (Waldspurger
et al., FAST 2015). A hash draws one block of each aligned group of 2**k, so the sample is spread evenly. The sample of
a larger k is a subset of that of a smaller k.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from drivelab.trace.statistics import extents
from drivelab.trace.statistics.batch import Batch, Flags, Ints
from drivelab.trace.statistics.footprint import BLOCK_SHIFT

MOST_BLOCKS = 1 << 21
"""Most followed blocks: 8 GiB of 4 KiB blocks, in about 50 MB."""
TOUCHES_PER_REQUEST = 3
LEAST_TOUCHES = 1 << 24
"""Limit of examined accesses to groups: this many, or TOUCHES_PER_REQUEST in long traces."""


class Sample:
    """The followed 4 KiB blocks, collected batch by batch from `requests` requests.

    `level` is k, the smallest that meets both limits: one block of 2**k is followed. The order of the requests does not
    matter.
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
        """Followed share of all blocks."""
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
        """Return the followed and touched blocks, ascending; makes `level` final."""
        self._merge()
        return self._known

    def _work(self) -> int:
        """Return an upper bound of the groups that the requests so far touch."""
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
    """Return first and last block of each read or write of non-zero length."""
    moved = batch.transfers
    return batch.offset_bytes[moved] >> BLOCK_SHIFT, (batch.end_bytes[moved] - 1) >> BLOCK_SHIFT


def touches(first: Ints, last: Ints, level: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield pieces of (range number, followed block in the range), range by range."""
    for ranges, groups in extents.members(first >> level, last >> level):
        if level:
            blocks = _descend(groups, level)
            inside = (first[ranges] <= blocks) & (blocks <= last[ranges])
            yield ranges[inside], blocks[inside]
        else:
            yield ranges, groups


def _descend(groups: Ints, level: int) -> Ints:
    """Return the followed block of each group of 2**level."""
    for step in range(level, 0, -1):
        groups = groups * 2 + _bit(groups, step)
    return groups


def _drawn(blocks: Ints, step: int) -> Flags:
    """Return whether blocks followed at the previous level are followed at `step`."""
    return np.asarray((blocks >> (step - 1) & 1) == _bit(blocks >> step, step), np.bool_)


def _bit(groups: Ints, step: int) -> Ints:
    """Return the followed half of each group, 0 or 1 (MurmurHash3 finaliser)."""
    mixed = groups.astype(np.uint64) + np.uint64(step * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return (mixed >> np.uint64(63)).astype(np.int64)
