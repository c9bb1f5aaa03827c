"""Survey a whole trace before its first request can be placed and timed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.replay.engine_records import OPERATION_CODES, open_schedule
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics.batch import Batch, Flags, Ints, Times
from drivelab.trace.statistics.streams import Sequence

_CHUNK = 1 << 20
"""Records or extents processed at a time."""


def union(begin: Ints, end: Ints, gap: int = 0) -> tuple[Ints, Ints]:
    """Return disjoint ascending extents [begin, end), with gaps up to `gap` filled.

    Adjoining extents become one. Begins and ends are sorted separately: before a gap there are as many ends as begins.
    This is several times faster than sorting pairs.
    """
    return _union_of_own(begin.copy(), end.copy(), gap)


def _union_of_own(begin: Ints, end: Ints, gap: int) -> tuple[Ints, Ints]:
    """Return the union of extents as `union`, and overwrite the arrays."""
    if not begin.size:
        return begin, end
    begin.sort()
    end.sort()
    first = np.ones(begin.size, np.bool_)
    np.greater(begin[1:] - end[:-1], gap, out=first[1:])
    last = np.append(first[1:], True)
    return begin[first], end[last]


class Union:
    """The union of extents from batches; memory grows with the disjoint extents."""

    def __init__(self, gap: int = 0) -> None:
        self._gap = gap
        self._known = (np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._new: list[tuple[Ints, Ints]] = []

    def add(self, begin: Ints, end: Ints) -> None:
        """Add non-empty extents [begin, end)."""
        self._new.append(union(begin, end, self._gap))
        if sum(new.size for new, _ in self._new) > max(_CHUNK, self._known[0].size // 2):
            self.extents()

    def extents(self) -> tuple[Ints, Ints]:
        """Return begins and ends, ascending and disjoint."""
        if self._new:
            pieces = [self._known, *self._new]
            # Memory is scarce for long traces: no array lives longer than needed.
            self._known, self._new = (np.zeros(0, np.int64), np.zeros(0, np.int64)), []
            begin = np.concatenate([piece[0] for piece in pieces])
            end = np.concatenate([piece[1] for piece in pieces])
            pieces.clear()
            self._known = _union_of_own(begin, end, self._gap)
        return self._known

    def size(self) -> int:
        """Return the length that the extents cover, included gaps counted."""
        begin, end = self.extents()
        return int((end - begin).sum())


class Shape:
    """Footprint, sequential share and overlap of reads and writes, batch by batch."""

    def __init__(self) -> None:
        self._sequence, self._union = Sequence(), Union()
        self._transfers = self._sequential = self._moved_bytes = 0

    def add(self, batch: Batch) -> None:
        transfers = batch.transfers
        self._sequential += int(self._sequence.sequential(batch)[0].sum())
        self._transfers += int(transfers.sum())
        self._moved_bytes += int(batch.length_bytes[transfers].sum())
        self._union.add(batch.offset_bytes[transfers], batch.end_bytes[transfers])

    @property
    def footprint_bytes(self) -> int:
        """Distinct bytes read or written."""
        return self._union.size()

    @property
    def retouched_bytes(self) -> int:
        """Bytes read or written, minus the distinct bytes."""
        return self._moved_bytes - self.footprint_bytes

    @property
    def sequential_pct(self) -> float:
        """Sequential share of reads and writes; see drivelab.trace.statistics.streams."""
        return 100 * self._sequential / self._transfers if self._transfers else 0.0


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

    gap_blocks: int
    touched: Union = field(init=False)
    """Blocks of reads and writes, with gaps up to `gap_blocks`."""
    transfers: int = 0
    longest_blocks: int = 0
    """Longest read or write."""
    span_blocks: int = 0
    """End of the last block read or written."""
    reach_blocks: int = 0
    """End of the last block of any request."""

    def __post_init__(self) -> None:
        self.touched = Union(self.gap_blocks)


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
    """Survey batches with COLUMNS; touched blocks only if `gap_bytes` is given.

    Raises UserError for impossible extents and times, and for requests out of `queue_ns` order.
    """
    totals = Survey(gap_blocks=(gap_bytes or 0) // block_bytes)
    for requests in batches:
        batch = Batch(requests)
        totals.add_times(batch)
        if batch.queue_ns[0] < 0 or totals.last_ns >= LONGEST_NS:
            raise UserError("its times are impossible; decode or import the trace again")
        first, end, nonempty = blocks(batch, block_bytes)
        moved = batch.transfers
        totals.transfers += int(moved.sum())
        totals.longest_blocks = max(totals.longest_blocks, int((end - first)[moved].max(initial=0)))
        totals.span_blocks = max(totals.span_blocks, int(end[moved].max(initial=0)))
        totals.reach_blocks = max(totals.reach_blocks, int(end[nonempty].max(initial=0)))
        if gap_bytes is not None:
            totals.touched.add(first[moved], end[moved])
    return totals
