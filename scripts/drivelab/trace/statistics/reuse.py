"""Measure block reuse: kind, time distance and concentration of accesses.

Pairs of consecutive accesses to the same 4 KiB block count, as in Li et al., "An In-Depth Analysis of Cloud Block
Storage Workloads in Large-Scale Production", IISWC 2020.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch, Flags, Ints
from drivelab.trace.statistics.bins import LogHistogram
from drivelab.trace.statistics.extents import PIECE
from drivelab.trace.statistics.footprint import BLOCK_SHIFT
from drivelab.trace.statistics.sample import Sample, touches

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
