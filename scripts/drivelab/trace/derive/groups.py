"""Follow requests that the block layer merged into one dispatch."""

from __future__ import annotations

import numpy as np

from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags

REMEMBERED = 1 << 18
"""Number of latest dispatches followed. Requests of one dispatch are queued close together, so this is enough."""
_KEPT, _DROPPED = 1, 2


class DispatchGroups:
    """Dispatches of a trace, batch by batch; REMEMBERED bounds the memory."""

    def __init__(self) -> None:
        self._ids = np.zeros(0, np.int64)
        self._seen = np.zeros(0, np.uint8)
        self._apart = self._forgotten = 0
        self.requests = 0
        """Requests with a known dispatch."""

    def add(self, batch: Batch, kept: Flags) -> None:
        """Add a batch; `kept` marks its kept rows, shape (rows,)."""
        ids = batch.ints("dispatch_id")
        known = ids != UNKNOWN
        self.requests += int(known.sum())
        ids = np.concatenate([self._ids, ids[known]])
        seen = np.concatenate([self._seen, np.where(kept[known], _KEPT, _DROPPED).astype(np.uint8)])
        order = np.argsort(ids, kind="stable")
        begins = np.flatnonzero(np.concatenate([[True], np.diff(ids[order]) != 0])) if ids.size else order
        if not begins.size:
            return
        together = np.bitwise_or.reduceat(seen[order], begins)
        by_age = np.argsort(np.maximum.reduceat(order, begins))
        ids, seen = ids[order][begins][by_age], together[by_age]
        forgotten = max(ids.size - REMEMBERED, 0)
        self._apart += int((seen[:forgotten] == _KEPT | _DROPPED).sum())
        self._forgotten += forgotten
        self._ids, self._seen = ids[forgotten:], seen[forgotten:]

    @property
    def merged(self) -> int | None:
        """Requests dispatched as part of another; None if the trace has no dispatches."""
        return self.requests - self._forgotten - self._ids.size if self.requests else None

    @property
    def cut_apart(self) -> int | None:
        """Dispatches only partly kept; None if the trace has no dispatches."""
        return self._apart + int((self._seen == _KEPT | _DROPPED).sum()) if self.requests else None
