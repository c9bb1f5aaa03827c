"""Histograms of whole numbers in logarithmic bins, like fio's latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from drivelab.trace.statistics.batch import Ints

SUB_BITS = 6
"""64 bins per octave, exact below 128: FIO_IO_U_PLAT_BITS of fio's stat.h."""
ERROR_PCT = 100 / (2 << SUB_BITS)
"""Largest error of a percentile, which is the middle of its bin."""
BINS = (64 - SUB_BITS) << SUB_BITS


def bin_of(values: Ints) -> Ints:
    """Return the bin number of each value; values are at least 0."""
    octave = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    shift = np.maximum(octave - SUB_BITS, 0)
    # A value that rounds up to the next power of two still gets its own bin: (s, 63) is (s - 1, 127).
    return (shift << SUB_BITS) + (values >> shift)


def bounds(bins: Ints) -> tuple[Ints, Ints]:
    """Return the smallest and largest value of each bin, both inclusive."""
    shift = np.maximum((bins >> SUB_BITS) - 1, 0)
    low = (bins - (shift << SUB_BITS)) << shift
    return low, low + ((np.int64(1) << shift) - 1)


def whole_sum(values: Ints) -> int:
    """Return the exact sum, also beyond 64 bits."""
    return (int((values >> 24).sum()) << 24) + int((values & 0xFFFFFF).sum())


class LogHistogram:
    """Histogram of whole numbers >= 0; count, sum, minimum and maximum are exact."""

    def __init__(self) -> None:
        self.counts = np.zeros(BINS, np.int64)
        self.n = 0
        self.total = 0
        self.least = 0
        self.largest = 0

    def add(self, values: Ints) -> None:
        if not values.size:
            return
        self.counts += np.bincount(bin_of(values), minlength=BINS)
        least, largest = int(values.min()), int(values.max())
        self.least = min(self.least, least) if self.n else least
        self.largest = max(self.largest, largest)
        self.total += whole_sum(values)
        self.n += values.size

    @property
    def mean(self) -> float:
        """Mean of the values; NaN for none."""
        return self.total / self.n if self.n else math.nan

    def percentiles(self, *percents: float) -> list[float]:
        """Return nearest-rank percentiles, each within ERROR_PCT; NaN for no values."""
        return [percentile(self.counts, percent, self.least, self.largest) for percent in percents]

    def bins(self) -> Iterable[tuple[int, int, int]]:
        """Return (smallest, largest, count) of each non-empty bin."""
        used = np.flatnonzero(self.counts)
        low, high = bounds(used)
        return zip(low.tolist(), high.tolist(), self.counts[used].tolist(), strict=True)


def percentile(counts: Ints, percent: float, least: int, largest: int) -> float:
    """Return the middle of the bin of rank ceil(percent % of n), clipped to the data."""
    n = int(counts.sum())
    if not n:
        return math.nan
    rank = max(1, math.ceil(percent / 100 * n - 1e-9))
    number = np.searchsorted(np.cumsum(counts), rank)
    low, high = bounds(np.array([number], np.int64))
    return float(min(max((int(low[0]) + int(high[0])) / 2, least), largest))
