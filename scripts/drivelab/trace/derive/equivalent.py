"""Measure what a synthetic equivalent keeps from a trace and what it leaves out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics.count import tables
from drivelab.trace.statistics.overview import KNOWN_SHARE
from drivelab.trace.statistics.requests import Requests, opened


@dataclass(frozen=True)
class Stream:
    """Reads or writes of one size, random or sequential."""

    operation: str
    length_bytes: int
    sequential: bool
    requests: int
    share_pct: float
    """Share of the trace's reads and writes."""
    depth: float | None
    """Mean depth of the stream's requests while any was in flight; None if unknown."""


@dataclass(frozen=True)
class Equivalent:
    """Streams by descending share, and facts about the rest of the trace."""

    streams: tuple[Stream, ...]
    block_bytes: int
    rounded: int
    """Requests whose size was rounded up to a multiple of `block_bytes`."""
    length_step_bytes: int
    transfers: int
    """Reads and writes of non-zero length."""
    transfer_bytes: int
    left_out_streams: int
    left_out_requests: int
    left_out_bytes: int
    operations: dict[str, int]
    """Requests of each operation."""
    fua: int
    preflush: int
    merged: int | None
    """Requests that the block layer merged into others before the drive; None if unknown."""
    duration_s: float
    without_completion: int
    depth: float | None
    """Mean depth of all requests, as in Stream."""
    idle_share_pct: float | None
    """Share of the time with nothing in flight; None if unknown."""
    both_share_pct: float | None
    """Share of the busy time with both reads and writes in flight."""
    variation: float | None
    """Coefficient of variation of interarrival times."""
    low_bytes: int
    high_bytes: int
    footprint_bytes: int
    footprint_block_bytes: int
    capacity_bytes: int | None

    @property
    def left_out_pct(self) -> float:
        return 100 * self.left_out_requests / self.transfers

    @property
    def active_range_pct(self) -> float:
        """Footprint as % of capacity, rounded up to 0.01; 100 if capacity is unknown."""
        if not self.capacity_bytes:
            return 100.0
        return min(max(math.ceil(1e4 * self.footprint_bytes / self.capacity_bytes) / 100, 0.01), 100.0)


def measure(path: Path, *, streams: int, block_bytes: int) -> Equivalent:
    """Measure a trace's `streams` most frequent streams, in bounded memory.

    Sizes are rounded up to multiples of `block_bytes`. Raises UserError when the trace has no read or write.
    """
    with opened(path) as requests:
        counted = tables(requests, path.stem)
        kinds, facts = counted["trace_streams"], counted["trace_overview"].iloc[0]
        if kinds.empty:
            raise UserError(f"{path}: has no workload: no read or write moves data")
        rounded = -(-kinds["length_bytes"] // block_bytes) * block_bytes
        ranked = kinds.assign(length_bytes=rounded).groupby(
            ["operation", "length_bytes", "sequential"], as_index=False
        )[["requests", "bytes"]].sum()  # fmt: skip
        order = ["requests", "length_bytes", "operation", "sequential"]
        ranked = ranked.sort_values(order, ascending=[False, True, True, True], ignore_index=True)
        chosen, left = ranked.head(streams), ranked.iloc[streams:]
        step = int(facts["length_step_bytes"])
        length = (
            f"((length_bytes + {step - 1}) // {step} * {step} + {block_bytes - 1}) // {block_bytes} * {block_bytes}"
        )
        of_streams = [
            _Busy(
                requests,
                f"moves WHERE operation = '{row.operation}' AND {length} = {row.length_bytes} "
                f"AND sequential = {bool(row.sequential)}",
            )
            for row in chosen.itertuples()
        ]
        every, transfers = _Busy(requests, "trace WHERE true"), _Busy(requests, "trace WHERE transfer")
        reads, writes = (
            _Busy(requests, f"trace WHERE transfer AND operation = '{operation}'") for operation in ("read", "write")
        )
        known = requests.times.completed >= KNOWN_SHARE * requests.times.requests and bool(every.busy_ns)
        duration_ns = requests.times.duration_ns
        merged = requests.row("SELECT count(dispatch_id) AS ids, count(DISTINCT dispatch_id) AS dispatches FROM trace")
    both_ns = reads.busy_ns + writes.busy_ns - transfers.busy_ns
    operations = counted["trace_operations"].set_index("operation")
    transferred = int(kinds["requests"].sum())
    variation = float(facts["interarrival_variation"])
    return Equivalent(
        streams=tuple(
            Stream(str(row.operation), int(row.length_bytes), bool(row.sequential), int(row.requests),
                   100 * int(row.requests) / transferred, busy.depth)
            for row, busy in zip(chosen.itertuples(), of_streams, strict=True)
        ),
        block_bytes=block_bytes,
        rounded=int(kinds.loc[rounded != kinds["length_bytes"], "requests"].sum()),
        length_step_bytes=step,
        transfers=transferred,
        transfer_bytes=int(kinds["bytes"].sum()),
        left_out_streams=len(left),
        left_out_requests=int(left["requests"].sum()),
        left_out_bytes=int(left["bytes"].sum()),
        operations={operation: int(operations.loc[operation, "requests"]) for operation in OPERATIONS},
        fua=int(operations["fua"].sum()),
        preflush=int(operations["preflush"].sum()),
        merged=merged["ids"] - merged["dispatches"] if merged["ids"] else None,
        duration_s=float(facts["duration_s"]),
        without_completion=int(facts["without_completion"]),
        depth=every.depth,
        idle_share_pct=100 * (1 - every.busy_ns / duration_ns) if known else None,
        both_share_pct=100 * both_ns / transfers.busy_ns if known and transfers.busy_ns else None,
        variation=None if math.isnan(variation) else variation,
        low_bytes=int(facts["low_bytes"]),
        high_bytes=int(facts["high_bytes"]),
        footprint_bytes=int(facts["footprint_bytes"]),
        footprint_block_bytes=int(facts["footprint_block_bytes"]),
        capacity_bytes=requests.provenance.get("capacity_bytes"),
    )  # fmt: skip


class _Busy:
    """Time with some of a trace's requests in flight; `chosen` names a view and a condition."""

    def __init__(self, requests: Requests, chosen: str) -> None:
        before = "ORDER BY queue_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
        times = requests.row(f"""
            SELECT coalesce(sum(greatest(complete_ns - greatest(queue_ns, reach_ns), 0)), 0) AS busy_ns,
                   sum(complete_ns - queue_ns) AS total_ns
            FROM (SELECT *, coalesce(max(complete_ns) OVER ({before}), queue_ns) AS reach_ns
                  FROM {chosen} AND complete_ns IS NOT NULL)""")
        self.busy_ns = int(times["busy_ns"])
        self.depth = int(times["total_ns"]) / self.busy_ns if self.busy_ns else None
        """Time-weighted mean depth while any request was in flight, or None."""
