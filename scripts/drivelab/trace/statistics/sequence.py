"""Which requests go on where an earlier one of the same direction ended."""

from __future__ import annotations

import numpy as np

from drivelab.trace.statistics.batch import READ, WRITE, Batch, Flags

STREAMS = 32
"""Earlier requests of the same direction that a request may continue: concurrent sequential streams interleave."""


class Sequence:
    """Follows a trace batch by batch."""

    def __init__(self) -> None:
        self._ends = {direction: np.full(STREAMS, -1, np.int64) for direction in (READ, WRITE)}

    def sequential(self, batch: Batch) -> tuple[Flags, Flags]:
        """Whether each read or write of some length is sequential: (multi-stream, strict).

        Multi-stream: it starts where one of the last STREAMS requests of its direction ended. Strict: where the last
        one did. Others are False.
        """
        multi, strict = np.zeros(batch.rows, np.bool_), np.zeros(batch.rows, np.bool_)
        for direction in (READ, WRITE):
            rows = np.flatnonzero(batch.transfers & (batch.operation == direction))
            start = batch.offset_bytes[rows]
            ends = np.concatenate([self._ends[direction], batch.end_bytes[rows]])
            found = np.zeros(rows.size, np.bool_)
            for back in range(1, STREAMS + 1):
                found |= start == ends[STREAMS - back : STREAMS - back + rows.size]
            multi[rows] = found
            strict[rows] = start == ends[STREAMS - 1 : STREAMS - 1 + rows.size]
            self._ends[direction] = ends[-STREAMS:]
        return multi, strict
