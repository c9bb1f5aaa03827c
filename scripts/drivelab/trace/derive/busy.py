"""Measure the time with requests in flight, and their mean number meanwhile."""

from __future__ import annotations

import numpy as np

from drivelab.trace.statistics.batch import Ints
from drivelab.trace.statistics.bins import whole_sum


class BusyTime:
    """Busy time of requests in begin order; exact, without storing requests."""

    def __init__(self) -> None:
        self.busy_ns = 0
        """Time with at least one request in flight."""
        self.total_ns = 0
        """Sum of the in-flight times of all requests."""
        self.requests = 0
        self._reach_ns = np.iinfo(np.int64).min

    def add(self, begin_ns: Ints, end_ns: Ints) -> None:
        """Add requests; `begin_ns` ascends over all calls; shapes (requests,)."""
        if not begin_ns.size:
            return
        reach_ns = np.maximum.accumulate(np.concatenate([[self._reach_ns], end_ns]))
        self.busy_ns += whole_sum(np.maximum(end_ns - np.maximum(begin_ns, reach_ns[:-1]), 0))
        self.total_ns += whole_sum(end_ns - begin_ns)
        self.requests += begin_ns.size
        self._reach_ns = int(reach_ns[-1])

    @property
    def depth(self) -> float | None:
        """Time-weighted mean depth while any request was in flight, or None."""
        return self.total_ns / self.busy_ns if self.busy_ns else None
