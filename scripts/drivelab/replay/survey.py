"""Survey a whole trace before its first request can be placed and timed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.replay.engine_records import OPERATION_CODES, open_schedule
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics.batch import READ, WRITE, Batch, Flags, Ints, Times, union
from drivelab.trace.statistics.streams import STREAMS, follows

_CHUNK = 1 << 20
"""Records or extents processed at a time."""


class Union:
    """The union of extents from batches; memory grows with the disjoint extents."""

    def __init__(self) -> None:
        self._known = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._new: list[tuple[Ints, Ints]] = []

    def add(self, begin: Ints, end: Ints) -> None:
        """Add non-empty extents [begin, end), and overwrite the arrays."""
        self._new.append(union(begin, end))
        if sum(new.size for new, _ in self._new) > max(_CHUNK, self._known[0].size // 2):
            self.extents()

    def extents(self) -> tuple[Ints, Ints]:
        """Return begins and ends, ascending and disjoint."""
        if self._new:
            begins, ends = zip(self._known, *self._new, strict=True)
            self._new.clear()
            self._known = union(np.concatenate(begins), np.concatenate(ends))
        return self._known

    def size(self) -> int:
        """Return the length that the extents cover."""
        begin, end = self.extents()
        return int((end - begin).sum())


class Shape(NamedTuple):
    """Footprint, sequential share and overlap of reads and writes."""

    footprint_bytes: int
    """Distinct bytes read or written."""
    retouched_bytes: int
    """Bytes read or written, minus the distinct bytes."""
    sequential_pct: float
    """Sequential share of reads and writes; see drivelab.trace.statistics.streams."""


class Shaping:
    """Find the shape of requests, batch by batch; `footprint_bytes` only if it is not known."""

    def __init__(self, footprint_bytes: int | None = None) -> None:
        self._union, self._footprint_bytes = Union(), footprint_bytes
        self._ends = {direction: np.full(STREAMS, -1, np.int64) for direction in (READ, WRITE)}
        """Ends of the last requests in each direction."""
        self._transfers = self._sequential = self._moved_bytes = 0

    def add(self, batch: Batch) -> None:
        transfers = batch.transfers
        for direction, before in self._ends.items():
            rows = np.flatnonzero(transfers & (batch.operation == direction))
            ends = batch.end_bytes[rows]
            self._sequential += int(follows(batch.offset_bytes[rows], ends, before).sum())
            self._ends[direction] = np.concatenate([before, ends])[-STREAMS:]
        self._transfers += int(transfers.sum())
        self._moved_bytes += int(batch.length_bytes[transfers].sum())
        if self._footprint_bytes is None:
            self._union.add(batch.offset_bytes[transfers], batch.end_bytes[transfers])

    def extents(self) -> tuple[Ints, Ints]:
        """Return begins and ends of all bytes read or written, ascending and disjoint."""
        return self._union.extents()

    def shape(self) -> Shape:
        footprint_bytes = self._union.size() if self._footprint_bytes is None else self._footprint_bytes
        sequential_pct = 100 * self._sequential / self._transfers if self._transfers else 0.0
        return Shape(footprint_bytes, self._moved_bytes - footprint_bytes, sequential_pct)


def footprint_extents(schedule: Path) -> Ints:
    """Return the extents that a schedule's reads touch, merged and ascending.

    Shape (n, 2): offset and length in bytes.
    Raises UserError as drivelab.replay.engine_records.open_schedule does.
    """
    records, touched = open_schedule(schedule).records, Union()
    for low in range(0, len(records), _CHUNK):
        chunk = records[low : low + _CHUNK]
        reads = chunk[chunk["operation"] == OPERATION_CODES["read"]]
        offset = reads["offset_bytes"].astype(np.int64)
        touched.add(offset, offset + reads["length_bytes"].astype(np.int64))
    begin, end = touched.extents()
    return np.stack([begin, end - begin], axis=1)


COLUMNS = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")
LONGEST_NS = 1 << 62
"""All times are earlier, so that the difference and the sum of two fit into 64 bits."""
FLUSH, DISCARD, ZEROES = (OPERATIONS.index(name) for name in ("flush", "discard", "write-zeroes"))


@dataclass(kw_only=True)
class Survey(Times):
    """Totals of a trace's requests as dispatched."""

    block_bytes: int
    gap_bytes: int | None = None
    """The longest gap between touched extents that is filled; None: nothing is compacted."""
    transfers: int = 0
    longest_blocks: int = 0
    """Longest read or write."""
    span_blocks: int = 0
    """End of the last block read or written."""
    reach_blocks: int = 0
    """End of the last block of any request."""
    altered: int = 0
    """Requests that become whole blocks: longer, shorter, or nothing."""
    shape: Shape = field(init=False)
    """Shape of all batches."""
    touched: tuple[Ints, Ints] | None = field(init=False, default=None)
    """First block, and block after the last, of each extent of reads and writes with gaps filled."""
    _shaping: Shaping = field(init=False, default_factory=Shaping)

    def add(self, batch: Batch) -> None:
        """Count a batch; raises UserError as `survey` does."""
        self.add_times(batch)
        if batch.queue_ns[0] < 0 or self.last_ns >= LONGEST_NS:
            raise UserError("its times are impossible; decode or import the trace again")
        first, end, nonempty = blocks(batch, self.block_bytes)
        moved = batch.transfers
        altered = (batch.operation != FLUSH) & (~nonempty | ((end - first) * self.block_bytes != batch.length_bytes))
        self.altered += int(altered.sum())
        self.transfers += int(moved.sum())
        self.longest_blocks = max(self.longest_blocks, int((end - first)[moved].max(initial=0)))
        self.span_blocks = max(self.span_blocks, int(end[moved].max(initial=0)))
        self.reach_blocks = max(self.reach_blocks, int(end[nonempty].max(initial=0)))
        self._shaping.add(batch)

    def finish(self) -> None:
        """Set `shape` and `touched`, and free what they were made of."""
        self.shape = self._shaping.shape()
        if self.gap_bytes is not None:
            begin_bytes, end_bytes = self._shaping.extents()
            begin, end = begin_bytes // self.block_bytes, (end_bytes - 1) // self.block_bytes + 1
            self.touched = union(begin, end, self.gap_bytes // self.block_bytes)
        del self._shaping


def blocks(batch: Batch, block_bytes: int) -> tuple[Ints, Ints, Flags]:
    """Return each request's first block, end block, and whether a block is left.

    Requests widen to whole blocks. Discards shrink to the whole blocks within, as widening would destroy other data.
    """
    offset, length = batch.offset_bytes, batch.length_bytes
    first, end = offset // block_bytes, (batch.end_bytes - 1) // block_bytes + 1
    discard = batch.operation == DISCARD
    if discard.any():
        first[discard] = (offset[discard] - 1) // block_bytes + 1
        end[discard] = batch.end_bytes[discard] // block_bytes
    nonempty = (length > 0) & (end > first) & (batch.operation != FLUSH)
    return first, end, nonempty


def survey(batches: Iterable[pa.RecordBatch], block_bytes: int, gap_bytes: int | None) -> Survey:
    """Survey batches with COLUMNS; `touched` only if `gap_bytes` is given: the longest gap filled.

    Raises UserError for impossible extents and times, and for requests out of `queue_ns` order.
    """
    totals = Survey(block_bytes=block_bytes, gap_bytes=gap_bytes)
    for requests in batches:
        totals.add(Batch(requests))
    totals.finish()
    return totals
