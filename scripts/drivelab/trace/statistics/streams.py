"""Count I/O streams after SNIA's Real World Storage Workload PTS.

A stream is all reads or writes of one size, random or sequential.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.core.units import format_size
from drivelab.trace.statistics.batch import READ, WRITE, Batch, Flags
from drivelab.trace.statistics.latencies import LengthCounts

MAIN_SHARE_PCT = 80.0
"""Share of the reads and writes that a trace's main streams cover."""


def streams(lengths: LengthCounts) -> pd.DataFrame:
    """Return the streams by descending count.

    Columns: key, rank, stream, operation, length_bytes, sequential, requests, bytes, shares. `main` is true for the
    fewest streams that together cover MAIN_SHARE_PCT of the reads and writes. Zero-length requests and other operations
    belong to no stream.
    """
    frame = lengths.frame()
    frame = frame[frame["operation"].isin(["read", "write"]) & (frame["length_bytes"] > 0)]
    order = ["requests", "length_bytes", "operation", "sequential"]
    frame = frame.sort_values(order, ascending=[False, True, True, True], ignore_index=True)
    total = frame["requests"].sum()
    reached = 100 * frame["requests"].cumsum() / total
    bytes_ = frame["requests"] * frame["length_bytes"]
    columns = ("sequential", "length_bytes", "operation")
    return frame.assign(
        rank=np.arange(1, len(frame) + 1),
        stream=np.array([_name(*row) for row in zip(*(frame[name] for name in columns), strict=True)], object),
        bytes=bytes_,
        share_pct=100 * frame["requests"] / total,
        cumulative_pct=reached,
        bytes_share_pct=100 * bytes_ / bytes_.sum(),
        main=reached - 100 * frame["requests"] / total < MAIN_SHARE_PCT - 1e-9,
        length_step_bytes=lengths.step_bytes,
    )


def _name(sequential: bool, length_bytes: int, operation: str) -> str:
    """Return SNIA's notation, such as `RND 4KiB W`."""
    return f"{'SEQ' if sequential else 'RND'} {format_size(length_bytes)} {operation[0].upper()}"


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
