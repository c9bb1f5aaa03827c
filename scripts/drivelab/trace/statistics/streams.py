"""Tell sequential requests, and count I/O streams after SNIA's Real World Storage Workload PTS.

A stream is all reads or writes of one size, random or sequential. A read or write is sequential if it starts where one
of the last STREAMS requests of its direction ended; strictly, if it starts where the last one ended.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from drivelab.core.units import format_size
from drivelab.trace.statistics.batch import Flags, Ints

STREAMS = 32
"""A request may continue one of this many earlier ones in its direction, as concurrent streams interleave."""
MAIN_SHARE_PCT = 80.0
"""Share of the reads and writes that a trace's main streams cover."""
MOST = 1 << 16
"""Most kinds of requests, by operation, length and sequentiality."""

_ENDS = ", ".join(f"lag(end_bytes, {back}) OVER ()" for back in range(1, STREAMS + 1))
MOVES = "CREATE TEMP VIEW moves AS " + " UNION ALL ".join(
    f"""
    SELECT *, coalesce(offset_bytes IN ({_ENDS}), false) AS sequential,
           coalesce(offset_bytes = lag(end_bytes) OVER (), false) AS strict
    FROM trace WHERE transfer AND operation = '{operation}'"""
    for operation in ("read", "write")
)
KINDS = """
    CREATE TEMP TABLE kinds AS
    SELECT operation, length_bytes, sequential, count(*) AS requests, count(*) FILTER (strict) AS strict
    FROM (SELECT operation, length_bytes, sequential, strict FROM moves
          UNION ALL SELECT operation, length_bytes, false, false FROM trace WHERE NOT transfer)
    GROUP BY ALL"""


def in_steps(rows: Callable[[str], pd.DataFrame]) -> tuple[pd.DataFrame, int]:
    """Return table `kinds` with at most MOST rows, and the step of its lengths in bytes.

    Lengths are rounded up to multiples of the step, the smallest sufficient power of two; `bytes` is exact. `rows`
    returns the result of a query.
    """
    step = 1
    while True:
        length = f"(length_bytes + {step - 1}) // {step} * {step}"
        grouped = f"""
            SELECT operation, {length} AS length_bytes, sequential, sum(requests)::BIGINT AS requests,
                   sum(strict)::BIGINT AS strict, sum(length_bytes * requests)::BIGINT AS bytes
            FROM kinds GROUP BY ALL ORDER BY length_bytes, operation, sequential"""
        if rows(f"SELECT count(*) AS kinds FROM ({grouped})")["kinds"][0] <= MOST:
            return rows(grouped), step
        step *= 2


def streams(kinds: pd.DataFrame, step_bytes: int) -> pd.DataFrame:
    """Return table `trace_streams` without column `trace`, by descending count.

    `main` is true for the fewest streams that together cover MAIN_SHARE_PCT of the reads and writes. Zero-length
    requests and other operations belong to no stream.
    """
    frame = kinds[kinds["operation"].isin(["read", "write"]) & (kinds["length_bytes"] > 0)]
    order = ["requests", "length_bytes", "operation", "sequential"]
    frame = frame[order].sort_values(order, ascending=[False, True, True, True], ignore_index=True)
    total = frame["requests"].sum()
    reached = 100 * frame["requests"].cumsum() / total
    bytes_ = frame["requests"] * frame["length_bytes"]
    columns = ("sequential", "length_bytes", "operation")
    return frame.assign(
        rank=np.arange(1, len(frame) + 1),
        stream=np.array([stream_name(*row) for row in zip(*(frame[name] for name in columns), strict=True)], object),
        bytes=bytes_,
        share_pct=100 * frame["requests"] / total,
        cumulative_pct=reached,
        bytes_share_pct=100 * bytes_ / bytes_.sum(),
        main=reached - 100 * frame["requests"] / total < MAIN_SHARE_PCT - 1e-9,
        length_step_bytes=step_bytes,
    )


def stream_name(sequential: bool, length_bytes: int, operation: str) -> str:
    """Return SNIA's notation, such as `RND 4KiB W`."""
    return f"{'SEQ' if sequential else 'RND'} {format_size(length_bytes)} {operation[0].upper()}"


def follows(offset_bytes: Ints, end_bytes: Ints, earlier: Ints | None = None) -> Flags:
    """Return which requests of one direction are sequential; `earlier` are the ends of the last STREAMS before them."""
    before = np.full(STREAMS, -1, np.int64) if earlier is None else earlier
    ends = np.concatenate([before, end_bytes])
    flags = np.zeros(offset_bytes.size, np.bool_)
    for back in range(1, STREAMS + 1):
        flags |= offset_bytes == ends[STREAMS - back : STREAMS - back + offset_bytes.size]
    return flags
