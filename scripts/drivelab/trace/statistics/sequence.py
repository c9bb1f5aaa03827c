"""Find sequential requests: they start where an earlier one ended."""

from __future__ import annotations

import numpy as np

from drivelab.trace.statistics.batch import READ, WRITE, Batch, Flags

STREAMS = 32
"""A request may continue one of this many earlier ones in its direction, as concurrent streams interleave."""


class Sequence:
    """The latest request ends of a trace, batch by batch."""

    def __init__(self) -> None:
        self._ends = {direction: np.full(STREAMS, -1, np.int64) for direction in (READ, WRITE)}

    def sequential(self, batch: Batch) -> tuple[Flags, Flags]:
        """Return whether each request is sequential: (multi-stream, strict).

        Multi-stream: a read or write starts where one of the last STREAMS requests of its direction ended. Strict: it
        starts where the last one ended. All other requests are False.
        """
        multi, strict = np.zeros(batch.rows, np.bool_), np.zeros(batch.rows, np.bool_)
        for direction in (READ, WRITE):
            rows = np.flatnonzero(batch.transfers & (batch.operation == direction))
            start = batch.offset_bytes[rows]
            ends = np.concatenate([self._ends[direction], batch.end_bytes[rows]])
            continues = np.zeros(rows.size, np.bool_)
            for back in range(1, STREAMS + 1):
                continues |= start == ends[STREAMS - back : STREAMS - back + rows.size]
            multi[rows] = continues
            strict[rows] = start == ends[STREAMS - 1 : STREAMS - 1 + rows.size]
            self._ends[direction] = ends[-STREAMS:]
        return multi, strict
