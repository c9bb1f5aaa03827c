"""Histograms of whole numbers in logarithmic bins, as fio keeps latencies."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from drivelab.trace.statistics.batch import Ints

SUB_BITS = 6
"""64 bins to an octave, exact below 128: FIO_IO_U_PLAT_BITS of fio's stat.h."""
ERROR_PCT = 100 / (2 << SUB_BITS)
"""A percentile is the middle of its bin: at most so far off."""
BINS = (64 - SUB_BITS) << SUB_BITS


def bin_of(values: Ints) -> Ints:
    """Number of the bin of each value; values are at least 0."""
    octave = np.frexp(values.astype(np.float64))[1].astype(np.int64) - 1
    shift = np.maximum(octave - SUB_BITS, 0)
    # A value that rounds up to the next power of two gets its own bin all the same: (s, 63) is (s - 1, 127).
    return (shift << SUB_BITS) + (values >> shift)


def bounds(bins: Ints) -> tuple[Ints, Ints]:
    """Least and largest value of each bin, both inclusive."""
    shift = np.maximum((bins >> SUB_BITS) - 1, 0)
    low = (bins - (shift << SUB_BITS)) << shift
    return low, low + ((np.int64(1) << shift) - 1)


def whole_sum(values: Ints) -> int:
    """Exact sum, also where 64 bits do not hold it."""
    return (int((values >> 24).sum()) << 24) + int((values & 0xFFFFFF).sum())


class LogHistogram:
    """Counts of whole numbers of at least 0; number, sum, least and largest are exact."""

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
        """NaN for no values."""
        return self.total / self.n if self.n else math.nan

    def percentiles(self, *wanted: float) -> list[float]:
        """Nearest-rank percentiles, each within ERROR_PCT; NaN for no values."""
        return [percentile(self.counts, one, self.least, self.largest) for one in wanted]

    def bins(self) -> Iterable[tuple[int, int, int]]:
        """(least, largest, count) of each bin that holds something."""
        used = np.flatnonzero(self.counts)
        low, high = bounds(used)
        return zip(low.tolist(), high.tolist(), self.counts[used].tolist(), strict=True)


def percentile(counts: Ints, wanted: float, least: int, largest: int) -> float:
    """Middle of the bin that holds the value of rank ceil(wanted % of all), within what there was."""
    n = int(counts.sum())
    if not n:
        return math.nan
    rank = max(1, math.ceil(wanted / 100 * n - 1e-9))
    number = np.searchsorted(np.cumsum(counts), rank)
    low, high = bounds(np.array([number], np.int64))
    return float(min(max((int(low[0]) + int(high[0])) / 2, least), largest))
