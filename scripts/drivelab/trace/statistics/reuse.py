"""Measure block reuse: kind, time distance and concentration of accesses.

Pairs of consecutive accesses to the same 4 KiB block count, as in Li et al., "An In-Depth Analysis of Cloud Block
Storage Workloads in Large-Scale Production", IISWC 2020.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from drivelab.trace.statistics import footprint
from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch, Flags, Ints
from drivelab.trace.statistics.bins import LogHistogram
from drivelab.trace.statistics.footprint import BLOCK_SHIFT, PIECE

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
        self._touches += footprint.size(first, last)
        self._requests += int(first.size)
        while self._work() > self._most_touches:
            self._coarsen()
        level = self.level
        for _, blocks in touches(first, last, level):
            for step in range(level + 1, self.level + 1):  # coarsened by an earlier piece
                blocks = blocks[_drawn(blocks, step)]
            self._new.append(footprint.distinct(blocks))
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
        self._known = footprint.distinct(self._known, *self._new)
        self._new = []
        while self._known.size > MOST_BLOCKS:
            self._coarsen()

    def _coarsen(self) -> None:
        self.level += 1
        known = footprint.distinct(self._known, *self._new)
        self._known, self._new = known[_drawn(known, self.level)], []


def _blocks(batch: Batch) -> tuple[Ints, Ints]:
    """Return first and last block of each read or write of non-zero length."""
    moved = batch.transfers
    return batch.offset_bytes[moved] >> BLOCK_SHIFT, (batch.end_bytes[moved] - 1) >> BLOCK_SHIFT


def touches(first: Ints, last: Ints, level: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield pieces of (range number, followed block in the range), range by range."""
    for ranges, groups in footprint.members(first >> level, last >> level):
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


KINDS = ("read after read", "write after read", "read after write", "write after write")
"""Index: 2 * (earlier access is a write) + (later access is a write)."""
_PLACES = 18
assert 1 << _PLACES == PIECE


class Reuse:
    """Accesses to the blocks of a sample, followed through the trace."""

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._blocks = sample.blocks()
        self._last_ns = np.full(self._blocks.size, UNKNOWN, np.int64)
        self._last_write = np.zeros(self._blocks.size, np.bool_)
        self._accesses = {write: np.zeros(self._blocks.size, np.uint32) for write in (False, True)}
        self.distances = [LogHistogram() for _ in KINDS]

    def add(self, batch: Batch) -> None:
        moved = batch.transfers
        first = batch.offset_bytes[moved] >> BLOCK_SHIFT
        last = (batch.end_bytes[moved] - 1) >> BLOCK_SHIFT
        times, writes = batch.queue_ns[moved], batch.operation[moved] == WRITE
        for requests, blocks in touches(first, last, self._sample.level):
            if blocks.size:
                self._follow(blocks, times[requests], writes[requests])

    def _follow(self, blocks: Ints, times: Ints, writes: Flags) -> None:
        """Add accesses in trace order."""
        order = _stable_order(blocks)
        blocks, times, writes = blocks[order], times[order], writes[order]
        begins = np.flatnonzero(np.concatenate([[True], blocks[1:] != blocks[:-1]]))
        ends = np.concatenate([begins[1:], [blocks.size]]) - 1
        at = np.searchsorted(self._blocks, blocks[begins])
        before_ns, before_write = np.empty_like(times), np.empty_like(writes)
        before_ns[1:], before_write[1:] = times[:-1], writes[:-1]
        before_ns[begins], before_write[begins] = self._last_ns[at], self._last_write[at]
        known = before_ns != UNKNOWN
        kind = 2 * before_write[known].astype(np.int8) + writes[known]
        distance = (times - before_ns)[known]
        for number, histogram in enumerate(self.distances):
            histogram.add(distance[kind == number])
        self._last_ns[at], self._last_write[at] = times[ends], writes[ends]
        written = np.add.reduceat(writes, begins, dtype=np.uint32)
        self._accesses[True][at] += written
        self._accesses[False][at] += (ends - begins + 1).astype(np.uint32) - written

    def frame(self) -> pd.DataFrame:
        """Return table `trace_reuse` without column `trace`: a row per kind of pair."""
        scale = 1 << self._sample.level
        pairs = sum(histogram.n for histogram in self.distances)
        names = ("p10_s", "p50_s", "p90_s", "p99_s")
        rows = []
        for kind, histogram in zip(KINDS, self.distances, strict=True):
            values = (value / 1e9 for value in histogram.percentiles(10, 50, 90, 99))
            share_pct, count = 100 * histogram.n / pairs if pairs else math.nan, histogram.n * scale
            rows.append({"kind": kind, "pairs": count, "share_pct": share_pct, **dict(zip(names, values, strict=True))})
        sampled = {"block_bytes": 1 << BLOCK_SHIFT, "followed_share_pct": 100 * self._sample.share}
        return pd.DataFrame(rows).assign(**sampled)

    def top_share_pct(self, top_pct: float, which: str = "all") -> float:
        """Return the share of accesses to the `top_pct` % most accessed blocks.

        Only blocks with accesses count; NaN without any. `which` is `all`, `read` or `write`.
        """
        parts = {"read": [False], "write": [True]}.get(which, [False, True])
        counts: Ints = np.zeros(self._blocks.size, np.int64)
        for write in parts:
            counts += self._accesses[write]
        counts = np.sort(counts[counts > 0])[::-1]
        if not counts.size:
            return math.nan
        return 100 * float(counts[: math.ceil(top_pct / 100 * counts.size - 1e-9)].sum() / counts.sum())


def _stable_order(keys: Ints) -> Ints:
    """Return the stable order of at most PIECE non-negative keys.

    Key and place fit into one number on any realistic device.
    """
    if int(keys.max()) >> (62 - _PLACES):
        return np.argsort(keys, kind="stable")
    packed: Ints = keys << _PLACES | np.arange(keys.size)
    packed.sort()
    return packed & (PIECE - 1)
