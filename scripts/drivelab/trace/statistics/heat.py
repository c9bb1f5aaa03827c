"""Count reads and writes by time and start address."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.trace.statistics.batch import READ, WRITE, Batch
from drivelab.trace.statistics.intervals import Intervals

BANDS = 128
_ALIGNMENT_BYTES = 4096


class Heat:
    """Counts in cells of time and address; a request counts fully at its start."""

    def __init__(self, intervals: Intervals, low_bytes: int, high_bytes: int) -> None:
        self._intervals = intervals
        self._low_bytes = low_bytes // _ALIGNMENT_BYTES * _ALIGNMENT_BYTES
        span = max(high_bytes - self._low_bytes, 1)
        self._band_bytes = -(-span // (BANDS * _ALIGNMENT_BYTES)) * _ALIGNMENT_BYTES
        cells = intervals.count * BANDS
        self._requests = {direction: np.zeros(cells, np.int64) for direction in (READ, WRITE)}
        self._bytes = {direction: np.zeros(cells) for direction in (READ, WRITE)}

    def add(self, batch: Batch) -> None:
        for direction in (READ, WRITE):
            chosen = batch.transfers & (batch.operation == direction)
            band = (batch.offset_bytes[chosen] - self._low_bytes) // self._band_bytes
            cell = self._intervals.number(batch.queue_ns[chosen]) * BANDS + band
            self._requests[direction] += np.bincount(cell, minlength=self._requests[direction].size)
            self._bytes[direction] += np.bincount(cell, batch.length_bytes[chosen], self._bytes[direction].size)

    def frame(self) -> pd.DataFrame:
        """Return a row for each non-empty cell, with the cell's edges."""
        used = np.flatnonzero(self._requests[READ] + self._requests[WRITE])
        number, band = used // BANDS, used % BANDS
        edges_s = self._intervals.edges_ns() / 1e9
        low = self._low_bytes + band * self._band_bytes
        return pd.DataFrame(
            {
                "begin_s": edges_s[number],
                "end_s": edges_s[number + 1],
                "low_bytes": low,
                "high_bytes": low + self._band_bytes,
                "reads": self._requests[READ][used],
                "writes": self._requests[WRITE][used],
                "read_bytes": self._bytes[READ][used].astype(np.int64),
                "write_bytes": self._bytes[WRITE][used].astype(np.int64),
            }
        )
