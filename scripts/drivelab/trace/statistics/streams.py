"""Count I/O streams after SNIA's Real World Storage Workload PTS.

A stream is all reads or writes of one size, random or sequential.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.core.units import format_size
from drivelab.trace.statistics.batch import READ, WRITE, Batch, Flags, Intervals
from drivelab.trace.statistics.latencies import LengthCounts

SHOWN = 9
"""Number of most frequent streams shown separately in an I/O stream map."""
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


class StreamsOverTime:
    """Requests of the SHOWN most frequent streams and all others, by interval."""

    def __init__(self, ranked: pd.DataFrame, lengths: LengthCounts, intervals: Intervals) -> None:
        self._lengths, self._intervals = lengths, intervals
        self._names = [*ranked["stream"][:SHOWN], "others"] if len(ranked) > SHOWN else list(ranked["stream"])
        keys = ranked["key"].to_numpy(np.int64)[:SHOWN]
        self._order = np.argsort(keys)
        self._keys = keys[self._order]
        self._counts = np.zeros((intervals.count, SHOWN + 1), np.int64)

    def add(self, batch: Batch, sequential: Flags) -> None:
        rows = batch.transfers
        if not self._keys.size or not rows.any():
            return
        keys = self._lengths.keys(batch, sequential)[rows]
        place = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        rank = np.where(self._keys[place] == keys, self._order[place], SHOWN)
        cell = self._intervals.number(batch.queue_ns[rows]) * (SHOWN + 1) + rank
        self._counts += np.bincount(cell, minlength=self._counts.size).reshape(self._counts.shape)

    def frame(self) -> pd.DataFrame:
        """Return a row for each interval and active stream; rank SHOWN + 1 is `others`."""
        number, rank = np.nonzero(self._counts)
        edges_s = self._intervals.edges_ns() / 1e9
        return pd.DataFrame(
            {
                "begin_s": edges_s[number],
                "end_s": edges_s[number + 1],
                "rank": rank + 1,
                "stream": np.array([self._names[place] for place in rank], object),
                "requests": self._counts[number, rank],
            }
        )


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
