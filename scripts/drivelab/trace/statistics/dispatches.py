"""Count requests as dispatched: requests merged by the block layer count once."""

from __future__ import annotations

import numpy as np

from drivelab.trace.statistics.batch import UNKNOWN, Batch, Ints
from drivelab.trace.statistics.depth import Depth

_NONE = np.zeros(0, np.int64)


class Dispatches:
    """Join the requests of a dispatch and add them to a Depth.

    All requests of a dispatch are queued before it, so it is complete once the trace passes its time.
    """

    def __init__(self, depth: Depth) -> None:
        self.depth = depth
        self._waiting: tuple[Ints, Ints, Ints] = (_NONE, _NONE, _NONE)
        self.identified = 0
        """Requests with a known dispatch number."""
        self.merged = 0
        """Those of them dispatched as part of another."""
        self.left_out = 0
        """Requests without a dispatch or without a completion."""

    def add(self, batch: Batch) -> None:
        dispatched = batch.dispatch_ns != UNKNOWN
        usable = dispatched & (batch.complete_ns != UNKNOWN)
        self.left_out += int((~usable).sum())
        columns = (batch.dispatch_ns, batch.complete_ns, batch.ints("dispatch_id"))
        waiting = [np.concatenate([old, new[dispatched]]) for old, new in zip(self._waiting, columns, strict=True)]
        self._waiting = waiting[0], waiting[1], waiting[2]
        self._release(int(batch.queue_ns[-1]), everything=False)

    def finish(self, end_ns: int) -> None:
        """Finish after the last batch; the trace ends at `end_ns`."""
        self._release(end_ns, everything=True)
        self.depth.finish(end_ns)

    def _release(self, before_ns: int, *, everything: bool) -> None:
        dispatch_ns, complete_ns, number = self._waiting
        whole = (dispatch_ns < before_ns) | everything
        self._waiting = dispatch_ns[~whole], complete_ns[~whole], number[~whole]
        dispatch_ns, complete_ns, number = dispatch_ns[whole], complete_ns[whole], number[whole]
        known = number != UNKNOWN
        order = np.argsort(number[known], kind="stable")
        begins = np.flatnonzero(np.diff(number[known][order], prepend=UNKNOWN) != 0)
        self.identified += int(known.sum())
        self.merged += int(known.sum()) - begins.size
        if begins.size:
            first = np.minimum.reduceat(dispatch_ns[known][order], begins)
            last = np.maximum.reduceat(complete_ns[known][order], begins)
            dispatch_ns = np.concatenate([dispatch_ns[~known], first])
            complete_ns = np.concatenate([complete_ns[~known], last])
        ended = complete_ns != UNKNOWN
        self.depth.add(dispatch_ns[ended], complete_ns[ended], before_ns)
