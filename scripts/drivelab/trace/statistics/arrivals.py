"""Measure arrivals: interarrival times, burstiness, idle time."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from drivelab.trace.statistics.batch import Ints
from drivelab.trace.statistics.bins import LogHistogram

SCALES_NS = tuple(10**power for power in range(6, 12))
"""1 ms to 100 s."""
LEAST_WINDOWS = 10
"""Fewest windows for a variance."""
IDLE_GAP_NS = 100_000_000
"""A longer time without arrivals counts as idle if completions are unknown."""


class Arrivals:
    """Statistics of queue times, batch by batch."""

    def __init__(self, origin_ns: int, resolution_ns: int) -> None:
        self._last_ns = origin_ns
        self._seen = False
        self.idle_gap_ns = max(IDLE_GAP_NS, resolution_ns)
        self.idle_ns = 0
        self.between = LogHistogram()
        self._squares = 0.0
        self._windows = [_Windows(scale, origin_ns) for scale in SCALES_NS if scale >= resolution_ns]

    def add(self, queue_ns: Ints) -> None:
        between = np.diff(queue_ns, prepend=self._last_ns)[0 if self._seen else 1 :]
        self._seen, self._last_ns = True, int(queue_ns[-1])
        self.between.add(between)
        self._squares += float(np.square(between.astype(np.float64)).sum())
        self.idle_ns += int(between[between > self.idle_gap_ns].sum())
        for windows in self._windows:
            windows.add(queue_ns)

    @property
    def variation(self) -> float:
        """Coefficient of variation of interarrival times: 0 for a clock, 1 for Poisson."""
        if self.between.n < 2 or not self.between.total:
            return math.nan
        mean = self.between.mean
        return math.sqrt(max(self._squares / self.between.n - mean * mean, 0.0)) / mean

    def frame(self) -> pd.DataFrame:
        """Return the index of dispersion of counts at each scale within the trace."""
        rows = [row for windows in self._windows if (row := windows.row()) is not None]
        return pd.DataFrame(rows, columns=["window_s", "windows", "mean_requests", "variance", "dispersion"])


class _Windows:
    """Requests in equal windows from the first request; a partial window is left out."""

    def __init__(self, width_ns: int, origin_ns: int) -> None:
        self._width_ns, self._origin_ns = width_ns, origin_ns
        self._number, self._open = 0, 0
        self._sum = self._squares = 0

    def add(self, queue_ns: Ints) -> None:
        numbers = (queue_ns - self._origin_ns) // self._width_ns
        begins = np.flatnonzero(np.diff(numbers, prepend=self._number) != 0)
        edges = np.concatenate([[0], begins, [numbers.size]])
        counts = np.diff(edges)
        self._open += int(counts[0])
        if begins.size:
            closed = np.array([self._open, *counts[1:-1]], np.int64)
            self._sum += int(closed.sum())
            self._squares += int((closed * closed).sum())
            self._number, self._open = int(numbers[-1]), int(counts[-1])

    def row(self) -> dict[str, float] | None:
        """Return the statistics, or None with fewer than LEAST_WINDOWS whole windows."""
        windows = self._number
        if windows < LEAST_WINDOWS:
            return None
        mean = self._sum / windows
        variance = self._squares / windows - mean * mean
        return {
            "window_s": self._width_ns / 1e9,
            "windows": windows,
            "mean_requests": mean,
            "variance": max(variance, 0.0),
            "dispersion": max(variance, 0.0) / mean if mean else math.nan,
        }
