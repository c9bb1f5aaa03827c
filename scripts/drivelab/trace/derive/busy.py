"""How long something was in flight, and how much on the mean while it was."""

from __future__ import annotations

import numpy as np

from drivelab.trace.statistics.batch import Ints
from drivelab.trace.statistics.bins import whole_sum


class BusyTime:
    """Follows requests in the order in which they begin; exact, without keeping any of them."""

    def __init__(self) -> None:
        self.busy_ns = 0
        """Time in which at least one was in flight."""
        self.total_ns = 0
        """Sum of the times that each was in flight."""
        self.requests = 0
        self._reach_ns = np.iinfo(np.int64).min

    def add(self, begin_ns: Ints, end_ns: Ints) -> None:
        """`begin_ns` ascending, also over all calls, `end_ns` not before; shapes (requests,)."""
        if not begin_ns.size:
            return
        reach_ns = np.maximum.accumulate(np.concatenate([[self._reach_ns], end_ns]))
        self.busy_ns += whole_sum(np.maximum(end_ns - np.maximum(begin_ns, reach_ns[:-1]), 0))
        self.total_ns += whole_sum(end_ns - begin_ns)
        self.requests += begin_ns.size
        self._reach_ns = int(reach_ns[-1])

    @property
    def depth(self) -> float | None:
        """Mean number in flight while any was, weighted by time; None where no time passed."""
        return self.total_ns / self.busy_ns if self.busy_ns else None
