"""What a synthetic equivalent takes over from a trace, and what it leaves out, in numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from drivelab.errors import UserError
from drivelab.trace.derive.busy import BusyTime
from drivelab.trace.derive.groups import DispatchGroups
from drivelab.trace.schema import OPERATIONS, TraceFile
from drivelab.trace.statistics import survey
from drivelab.trace.statistics.arrivals import Arrivals
from drivelab.trace.statistics.batch import READ, UNKNOWN, WRITE, Batch
from drivelab.trace.statistics.footprint import Footprint
from drivelab.trace.statistics.marks import resolution_ns
from drivelab.trace.statistics.overview import KNOWN_SHARE
from drivelab.trace.statistics.sequence import Sequence
from drivelab.trace.statistics.streams import streams as all_streams

_COLUMNS = (*survey.COLUMNS, "fua", "preflush", "dispatch_id")


@dataclass(frozen=True)
class Stream:
    """Reads or writes of one size, random or sequential."""

    operation: str
    length_bytes: int
    sequential: bool
    requests: int
    share_pct: float
    """Of all reads and writes of the trace."""
    depth: float | None
    """Mean number of its own requests in flight while any was; None where that is not known."""


@dataclass(frozen=True)
class Equivalent:
    """Streams by falling share, and the trace around them."""

    streams: tuple[Stream, ...]
    block_bytes: int
    rounded: int
    """Requests whose size was rounded up to a multiple of `block_bytes`."""
    length_step_bytes: int
    transfers: int
    """Reads and writes of the trace that move data."""
    transfer_bytes: int
    left_out_streams: int
    left_out_requests: int
    left_out_bytes: int
    operations: dict[str, int]
    """Requests of each operation."""
    fua: int
    preflush: int
    merged: int | None
    """Requests that the block layer had merged into others before they reached the drive; None where not known."""
    duration_s: float
    without_completion: int
    depth: float | None
    """Of all requests, as in Stream."""
    idle_share_pct: float | None
    """Of the time nothing was in flight; None where that is not known."""
    both_share_pct: float | None
    """Of the time in which something was in flight, reads and writes were."""
    variation: float | None
    """Coefficient of variation of the times between arrivals."""
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
        """Footprint as a share of the capacity, rounded up to hundredths; 100 where the capacity is not known."""
        if not self.capacity_bytes:
            return 100.0
        return min(max(math.ceil(1e4 * self.footprint_bytes / self.capacity_bytes) / 100, 0.01), 100.0)


def measure(file: TraceFile, path: Path, *, streams: int, block_bytes: int) -> Equivalent:
    """The `streams` most frequent streams of a trace, in two passes and bounded memory.

    Sizes are rounded up to multiples of `block_bytes`. Raises UserError when the trace has no read or write.
    """
    found = survey.survey(file.batches(survey.COLUMNS), file.rows)
    kinds = all_streams(found.lengths) if found.requests else pd.DataFrame()
    if kinds.empty:
        raise UserError(f"{path}: has no read and no write that moves data, so there is no workload in it")
    rounded = -(-kinds["length_bytes"] // block_bytes) * block_bytes
    table = kinds.assign(length_bytes=rounded, rounded=(rounded != kinds["length_bytes"]) * kinds["requests"])
    ranked = _ranked(table)
    chosen = ranked.head(streams)
    second = _Second(found, table, chosen, resolution_ns(file.provenance))
    for one in file.batches(_COLUMNS):
        if one.num_rows:
            second.add(Batch(one))
    left = ranked.iloc[len(chosen) :]
    transfers = int(kinds["requests"].sum())
    duration_ns = found.duration_ns
    known = found.completed >= KNOWN_SHARE * found.requests and bool(second.every.busy_ns)
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
        length_step_bytes=found.lengths.step_bytes,
        transfers=transfers,
        transfer_bytes=int(kinds["bytes"].sum()),
        left_out_streams=len(left),
        left_out_requests=int(left["requests"].sum()),
        left_out_bytes=int(left["bytes"].sum()),
        operations=dict(zip(OPERATIONS, found.operations.tolist(), strict=True)),
        fua=second.fua,
        preflush=second.preflush,
        merged=second.groups.merged,
        duration_s=duration_ns / 1e9,
        without_completion=second.without_completion,
        depth=second.every.depth,
        idle_share_pct=100 * (1 - second.every.busy_ns / duration_ns) if known else None,
        both_share_pct=100 * both_ns / second.transfers.busy_ns if known and second.transfers.busy_ns else None,
        variation=None if math.isnan(variation) else variation,
        low_bytes=found.low_bytes,
        high_bytes=found.high_bytes,
        footprint_bytes=second.touched_blocks << found.words.block_shift,
        footprint_block_bytes=found.words.block_bytes,
        capacity_bytes=file.provenance.get("capacity_bytes"),
    )  # fmt: skip


def _ranked(table: pd.DataFrame) -> pd.DataFrame:
    """Streams whose sizes became equal, put together, by falling count; ties as in the table of streams."""
    together = table.groupby(["operation", "length_bytes", "sequential"], as_index=False)[["requests", "bytes"]].sum()
    order = ["requests", "length_bytes", "operation", "sequential"]
    return together.sort_values(order, ascending=[False, True, True, True], ignore_index=True)


class _Second:
    """The second pass."""

    def __init__(self, found: survey.Survey, table: pd.DataFrame, chosen: pd.DataFrame, resolution: int) -> None:
        self._lengths, self._sequence = found.lengths, Sequence()
        rank_of = {_place(row): number for number, row in enumerate(chosen.itertuples())}
        ranks = np.array([rank_of.get(_place(row), -1) for row in table.itertuples()], np.int64)
        keys = table["key"].to_numpy(np.int64)
        order = np.argsort(keys)
        self._keys, self._ranks = keys[order], ranks[order]
        self._footprint = Footprint(found.words)
        self.arrivals = Arrivals(found.first_ns, resolution)
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
            *((one, rank == number) for number, one in enumerate(self.busy)),
        ):
            busy.add(batch.queue_ns[rows], batch.complete_ns[rows])


def _place(row: Any) -> tuple[str, int, bool]:
    return str(row.operation), int(row.length_bytes), bool(row.sequential)
