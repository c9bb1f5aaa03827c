"""Count requests, bytes, footprint and working set in each interval."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.trace.schema import OPERATIONS
from drivelab.trace.statistics.batch import Batch
from drivelab.trace.statistics.footprint import Footprint
from drivelab.trace.statistics.intervals import Intervals

COUNTS = ("reads", "writes", "flushes", "discards", "write_zeroes")
"""Columns for the counts of OPERATIONS."""
_LEAST_SPAN_NS = 1000
"""Shorter traces have no rate."""


class Timeline:
    """Counts over time, batch by batch."""

    def __init__(self, intervals: Intervals, footprint: Footprint) -> None:
        self._intervals, self._footprint = intervals, footprint
        self._block_bytes = 1 << footprint.block_shift
        self._requests = np.zeros((intervals.count, len(OPERATIONS)), np.int64)
        self._bytes = np.zeros((intervals.count, len(OPERATIONS)))
        self._new = np.zeros(intervals.count, np.int64)
        self._working = np.zeros(intervals.count, np.int64)
        self._current = 0
        self.read_blocks = self.write_blocks = 0

    def add(self, batch: Batch) -> None:
        number = self._intervals.number(batch.queue_ns)
        cell, shape = number * len(OPERATIONS) + batch.operation, self._requests.shape
        self._requests += np.bincount(cell, minlength=self._requests.size).reshape(shape)
        self._bytes += np.bincount(cell, batch.length_bytes, self._bytes.size).reshape(shape)
        edges = np.flatnonzero(np.diff(number)) + 1
        for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), batch.rows], strict=True):
            current = int(number[begin])
            if current != self._current:
                self._footprint.begin_interval()
                self._current = current
            touched = self._footprint.add(batch, slice(begin, end))
            self._new[current] += touched.blocks
            self._working[current] += touched.interval_blocks
            self.read_blocks += touched.read_blocks
            self.write_blocks += touched.write_blocks

    @property
    def footprint_bytes(self) -> int:
        return int(self._new.sum()) * self._block_bytes

    def frame(self) -> pd.DataFrame:
        """Return a row for each interval; times start at the first request."""
        edges_s = self._intervals.edges_ns() / 1e9
        requests = self._requests.sum(axis=1)
        lengths = self._bytes.astype(np.int64)
        timed = self._intervals.span_ns >= _LEAST_SPAN_NS
        return pd.DataFrame(
            {
                "begin_s": edges_s[:-1],
                "end_s": edges_s[1:],
                "requests": requests,
                **{name: self._requests[:, place] for place, name in enumerate(COUNTS)},
                "read_bytes": lengths[:, OPERATIONS.index("read")],
                "write_bytes": lengths[:, OPERATIONS.index("write")],
                "discard_bytes": lengths[:, OPERATIONS.index("discard")],
                "requests_per_s": requests / np.diff(edges_s) if timed else np.nan,
                "footprint_bytes": np.cumsum(self._new) * self._block_bytes,
                "working_set_bytes": self._working * self._block_bytes,
                "block_bytes": self._block_bytes,
            }
        )
