"""Measure what a synthetic equivalent keeps from a trace and what it leaves out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.core.errors import UserError
from drivelab.trace.derive.groups import DispatchGroups
from drivelab.trace.parquet_schema import OPERATIONS, TraceFile
from drivelab.trace.statistics import full_survey
from drivelab.trace.statistics.arrivals import Arrivals
from drivelab.trace.statistics.batch import READ, UNKNOWN, WRITE, Batch, Ints, resolution_ns
from drivelab.trace.statistics.bins import whole_sum
from drivelab.trace.statistics.footprint import Footprint
from drivelab.trace.statistics.overview import KNOWN_SHARE
from drivelab.trace.statistics.streams import Sequence
from drivelab.trace.statistics.streams import streams as all_streams


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


_COLUMNS = (*full_survey.COLUMNS, "fua", "preflush", "dispatch_id")


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


def measure(file: TraceFile, path: Path, *, streams: int, block_bytes: int) -> Equivalent:
    """Measure a trace's `streams` most frequent streams, in bounded memory.

    Sizes are rounded up to multiples of `block_bytes`. Raises UserError when the trace has no read or write.
    """
    surveyed = full_survey.survey(file.batches(full_survey.COLUMNS))
    kinds = all_streams(surveyed.lengths) if surveyed.requests else pd.DataFrame()
    if kinds.empty:
        raise UserError(f"{path}: has no workload: no read or write moves data")
    rounded = -(-kinds["length_bytes"] // block_bytes) * block_bytes
    table = kinds.assign(length_bytes=rounded, rounded=(rounded != kinds["length_bytes"]) * kinds["requests"])
    ranked = _ranked(table)
    chosen = ranked.head(streams)
    second = _Second(surveyed, table, chosen, resolution_ns(file.provenance))
    for requests in file.batches(_COLUMNS):
        if requests.num_rows:
            second.add(Batch(requests))
    left = ranked.iloc[len(chosen) :]
    transfers = int(kinds["requests"].sum())
    duration_ns = surveyed.duration_ns
    known = surveyed.completed >= KNOWN_SHARE * surveyed.requests and bool(second.every.busy_ns)
    reads, writes = second.directions
    both_ns = reads.busy_ns + writes.busy_ns - second.transfers.busy_ns
    variation = second.arrivals.variation
    return Equivalent(
        streams=tuple(
            Stream(str(row.operation), int(row.length_bytes), bool(row.sequential), int(row.requests),
                   100 * int(row.requests) / transfers, second.busy[number].depth)
            for number, row in enumerate(chosen.itertuples())
        ),
        block_bytes=block_bytes,
        rounded=int(table["rounded"].sum()),
        length_step_bytes=surveyed.lengths.step_bytes,
        transfers=transfers,
        transfer_bytes=int(kinds["bytes"].sum()),
        left_out_streams=len(left),
        left_out_requests=int(left["requests"].sum()),
        left_out_bytes=int(left["bytes"].sum()),
        operations=dict(zip(OPERATIONS, surveyed.operations.tolist(), strict=True)),
        fua=second.fua,
        preflush=second.preflush,
        merged=second.groups.merged,
        duration_s=duration_ns / 1e9,
        without_completion=second.without_completion,
        depth=second.every.depth,
        idle_share_pct=100 * (1 - second.every.busy_ns / duration_ns) if known else None,
        both_share_pct=100 * both_ns / second.transfers.busy_ns if known and second.transfers.busy_ns else None,
        variation=None if math.isnan(variation) else variation,
        low_bytes=surveyed.low_bytes,
        high_bytes=surveyed.high_bytes,
        footprint_bytes=second.touched_blocks << surveyed.words.block_shift,
        footprint_block_bytes=surveyed.words.block_bytes,
        capacity_bytes=file.provenance.get("capacity_bytes"),
    )  # fmt: skip


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Merge streams whose sizes became equal; sort by count, ties as in `streams`."""
    together = table.groupby(["operation", "length_bytes", "sequential"], as_index=False)[["requests", "bytes"]].sum()
    order = ["requests", "length_bytes", "operation", "sequential"]
    return together.sort_values(order, ascending=[False, True, True, True], ignore_index=True)


class _Second:
    """Totals of the second pass."""

    def __init__(
        self, surveyed: full_survey.Survey, table: pd.DataFrame, chosen: pd.DataFrame, resolution: int
    ) -> None:
        self._lengths, self._sequence = surveyed.lengths, Sequence()
        rank_of = {_place(row): number for number, row in enumerate(chosen.itertuples())}
        ranks = np.array([rank_of.get(_place(row), -1) for row in table.itertuples()], np.int64)
        keys = table["key"].to_numpy(np.int64)
        order = np.argsort(keys)
        self._keys, self._ranks = keys[order], ranks[order]
        self._footprint = Footprint(surveyed.words)
        self.arrivals = Arrivals(surveyed.first_ns, resolution)
        self.busy = [BusyTime() for _ in range(len(chosen))]
        self.directions = BusyTime(), BusyTime()
        self.transfers, self.every = BusyTime(), BusyTime()
        self.groups = DispatchGroups()
        self.fua = self.preflush = self.without_completion = self.touched_blocks = 0

    def add(self, batch: Batch) -> None:
        self.arrivals.add(batch.queue_ns)
        self.touched_blocks += self._footprint.add(batch, slice(None)).blocks
        self.groups.add(batch, np.ones(batch.rows, np.bool_))
        self.fua += int(batch.flag("fua").sum())
        self.preflush += int(batch.flag("preflush").sum())
        ended = batch.complete_ns != UNKNOWN
        self.without_completion += int((~ended).sum())
        moved = ended & batch.transfers
        rank = np.full(batch.rows, -1, np.int64)
        keys = self._lengths.keys(batch, self._sequence.sequential(batch)[0])[moved]
        rank[moved] = self._ranks[np.searchsorted(self._keys, keys)]
        for busy, rows in (
            (self.every, ended),
            (self.transfers, moved),
            (self.directions[0], moved & (batch.operation == READ)),
            (self.directions[1], moved & (batch.operation == WRITE)),
            *((busy, rank == number) for number, busy in enumerate(self.busy)),
        ):
            busy.add(batch.queue_ns[rows], batch.complete_ns[rows])


def _place(row: Any) -> tuple[str, int, bool]:
    return str(row.operation), int(row.length_bytes), bool(row.sequential)
