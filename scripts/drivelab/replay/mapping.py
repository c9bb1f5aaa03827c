"""Map a trace's requests onto a drive: the active range replaces the device.

All counts are logical blocks. Reads and writes keep their length. Discards and write-zeroes may be as long as a drive;
they are cut off at the end of the range.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.core.units import format_amount, format_size
from drivelab.plan.replay_choice import MappingChoice
from drivelab.replay.engine_records import LONGEST_TRANSFER_BYTES
from drivelab.replay.survey import DISCARD, FLUSH, ZEROES, Shaping, Survey, blocks
from drivelab.trace.parquet_schema import REQUESTS
from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch, Flags, Ints

Method = Callable[[Ints, Ints, Flags], tuple[Ints, Ints]]
"""Takes first block, block after the last, and whether a request may be cut; returns both blocks in the range."""


@dataclass(frozen=True)
class MappingReport:
    """How a trace was fitted to a drive; all values count dispatched requests."""

    method: str
    """The method used: `auto` is resolved to `exact` or `modulo`."""
    reason: str
    """Why this method, as text."""
    capacity_bytes: int
    logical_block_bytes: int
    range_start_bytes: int
    range_bytes: int
    """The active range in whole blocks."""
    requests_in_trace: int
    requests_merged: int
    """Queued requests that the block layer had merged into others before it dispatched them."""
    requests_moved: int
    """Requests whose block in the range differs from their block on the traced device."""
    requests_resized: int
    """Reads, writes and write-zeroes widened, and discards shrunk, to whole logical blocks."""
    requests_split: int
    """Requests longer than an engine's largest transfer, split into several."""
    requests_clipped: int
    """Discards and write-zeroes cut at the end of the range, or at gaps that compaction removed."""
    requests_dropped: int
    """Requests with nothing left: discards of less than a block or beyond the range, requests of length 0."""
    footprint_before_bytes: int
    footprint_after_bytes: int
    """Distinct bytes read or written."""
    sequential_before_pct: float
    sequential_after_pct: float
    """Share of reads and writes that start where one of the last 32 in their direction ended."""
    retouched_before_bytes: int
    retouched_after_bytes: int
    """Bytes read or written, minus the distinct bytes: the overlap of requests."""

    def to_mapping(self) -> dict[str, Any]:
        """Return all fields, JSON-able."""
        return asdict(self)


@dataclass(frozen=True)
class Placed:
    """A batch placed on the drive. Arrays have shape (rows,)."""

    offset_bytes: Ints
    length_bytes: Ints
    kept: Flags
    """False for requests with nothing left."""
    altered: bool
    """Whether any request differs from the trace."""


class Mapper:
    """Place requests batch by batch and count the changes.

    Raises UserError when the range lies outside the drive, or the trace does not fit it with the chosen method.
    """

    def __init__(self, choice: MappingChoice, survey: Survey, capacity_bytes: int, block_bytes: int) -> None:
        self.capacity_bytes, self.block_bytes = capacity_bytes, block_bytes
        self.low_block, self.range_blocks = active_range(choice, capacity_bytes, block_bytes)
        self._survey = survey
        if survey.longest_blocks > self.range_blocks:
            raise UserError(
                f"a request of {format_size(survey.longest_blocks * block_bytes)} is longer than the active range of "
                f"{format_size(self.range_blocks * block_bytes)}; replay on a larger drive, or with a larger --range"
            )
        self.method, self.reason = self._choose(choice)
        self._place: Method = {
            "exact": lambda first, end, cuttable: (first, end),
            "modulo": lambda first, end, cuttable: self._moved_back(first % self.range_blocks, end - first, cuttable),
            "scale": self._scale,
            "compact": self._compact,
        }[self.method]
        if survey.touched is not None:
            self._prepare_compaction(survey.touched, choice.gap_bytes)
        self.moved = self.resized = self.clipped = self.dropped = self._requests = 0
        self.split = 0
        """Requests that became several."""
        keeps_footprint = self.method in ("exact", "compact") and not survey.altered
        alters = self.method != "exact" or self.low_block or survey.altered
        self._shaping = Shaping(survey.shape.footprint_bytes if keeps_footprint else None) if alters else None
        """The shape on the drive; None if it is that of the trace."""

    def left(self, requests: pa.RecordBatch) -> tuple[pa.RecordBatch, Batch]:
        """Return the requests that are left, on the drive."""
        batch = Batch(requests)
        placed = self.place(batch)
        self._requests += batch.rows
        if placed.altered:
            requests = _moved(requests, placed)
            batch = Batch(requests)
        if self._shaping is not None:
            self._shaping.add(batch)
        return requests, batch

    def report(self, requests_in_trace: int) -> MappingReport:
        """Return how the requests so far were mapped."""
        before = self._survey.shape
        after = before if self._shaping is None else self._shaping.shape()
        return MappingReport(
            method=self.method,
            reason=self.reason,
            capacity_bytes=self.capacity_bytes,
            logical_block_bytes=self.block_bytes,
            range_start_bytes=self.low_block * self.block_bytes,
            range_bytes=self.range_blocks * self.block_bytes,
            requests_in_trace=requests_in_trace,
            requests_merged=requests_in_trace - self._requests,
            requests_moved=self.moved,
            requests_resized=self.resized,
            requests_split=self.split,
            requests_clipped=self.clipped,
            requests_dropped=self.dropped,
            footprint_before_bytes=before.footprint_bytes,
            footprint_after_bytes=after.footprint_bytes,
            sequential_before_pct=before.sequential_pct,
            sequential_after_pct=after.sequential_pct,
            retouched_before_bytes=before.retouched_bytes,
            retouched_after_bytes=after.retouched_bytes,
        )

    def place(self, batch: Batch) -> Placed:
        """Return offsets and lengths on the drive; flushes have offset and length 0."""
        first, end, nonempty = blocks(batch, self.block_bytes)
        flush = batch.operation == FLUSH
        cuttable = (batch.operation == DISCARD) | (batch.operation == ZEROES)
        resized = nonempty & ((end - first) * self.block_bytes != batch.length_bytes)
        first, end = np.where(nonempty, first, 0), np.where(nonempty, end, 0)
        new, after = self._place(first, end, cuttable)
        new, after = np.minimum(new, self.range_blocks), np.minimum(after, self.range_blocks)
        clipped = nonempty & (after - new < end - first)
        nonempty &= after > new
        moved, dropped = nonempty & (new != first), ~nonempty & ~flush
        self.resized += int((resized & nonempty).sum())
        self.clipped += int((clipped & nonempty).sum())
        self.moved += int(moved.sum())
        self.dropped += int(dropped.sum())
        return Placed(
            np.where(nonempty, (new + self.low_block) * self.block_bytes, 0),
            np.where(nonempty, (after - new) * self.block_bytes, 0),
            nonempty | flush,
            altered=bool(self.low_block or (resized | clipped | moved | dropped).any()),
        )

    def _choose(self, choice: MappingChoice) -> tuple[str, str]:
        reach, room = self._amounts(self._survey.reach_blocks, self.range_blocks)
        if self._survey.reach_blocks <= self.range_blocks:
            if choice.method == "auto":
                return "exact", f"the trace ends at {reach}, within the active range of {room}"
        elif choice.method == "auto":
            return "modulo", f"the trace ends at {reach}, beyond the active range of {room}"
        elif choice.method == "exact":
            least = (self.low_block + self._survey.reach_blocks) * self.block_bytes
            raise UserError(
                f"the trace ends at {reach}, beyond the active range of {room}; replay on a drive of at least "
                f"{format_size(least)}, or choose the mapping modulo, scale or compact"
            )
        return choice.method, "as chosen"

    def _scale(self, first: Ints, end: Ints, cuttable: Flags) -> tuple[Ints, Ints]:
        # Blocks times blocks overflow 64 bits; the fraction of a long double alone has 64.
        product = first.astype(np.longdouble) * np.longdouble(self.range_blocks)
        scaled = np.floor(product / np.longdouble(self._survey.span_blocks))
        start = np.minimum(scaled, np.longdouble(self.range_blocks)).astype(np.int64)
        return self._moved_back(start, end - first, cuttable)

    def _moved_back(self, start: Ints, length: Ints, cuttable: Flags) -> tuple[Ints, Ints]:
        """Move requests that cross the end back to the end, unless they may be cut."""
        start = np.where(cuttable, start, np.minimum(start, self.range_blocks - length))
        return start, start + length

    def _compact(self, first: Ints, end: Ints, cuttable: Flags) -> tuple[Ints, Ints]:
        start = self._rank(first)
        after = start + end - first  # Each read or write lies within one extent.
        if cuttable.any():
            after[cuttable] = self._rank(end[cuttable])
        return start, after

    def _rank(self, block: Ints) -> Ints:
        """Return the number of kept blocks below each block."""
        # Sorted blocks are found several times faster, as the CPU's cache holds what the next search reads.
        order = np.argsort(block)
        at = np.empty(block.size, np.int64)
        at[order] = np.searchsorted(self._begin, block[order], side="right") - 1
        below = np.minimum(block - self._begin[at] + self._base[at], self._base[at + 1])
        return np.where(at < 0, 0, below)

    def _prepare_compaction(self, touched: tuple[Ints, Ints], gap_bytes: int) -> None:
        begin, end = touched
        if begin.size and begin[0] <= gap_bytes // self.block_bytes:
            begin = begin.copy()
            begin[0] = 0
        self._begin = begin
        self._base = np.concatenate([[0], np.cumsum(end - begin)])
        """Kept blocks before each extent, and in all."""
        if self._base[-1] > self.range_blocks:
            taken, room = self._amounts(int(self._base[-1]), self.range_blocks)
            raise UserError(
                f"the compacted trace needs {taken}, gaps up to {format_size(gap_bytes)} included, but the active "
                f"range has {room}; choose a smaller gap, the mapping modulo, or a larger drive"
            )

    def _amounts(self, *counts: int) -> list[str]:
        """Format numbers of blocks; exact sizes where rounded ones would look equal."""
        sizes = [count * self.block_bytes for count in counts]
        texts = [format_amount(size) for size in sizes]
        return texts if len(set(texts)) == len(set(sizes)) else [format_size(size) for size in sizes]


def _moved(requests: pa.RecordBatch, placed: Placed) -> pa.RecordBatch:
    """Return the requests that are left, at their places."""
    for name, values in (("offset_bytes", placed.offset_bytes), ("length_bytes", placed.length_bytes)):
        place = requests.schema.get_field_index(name)
        requests = requests.set_column(place, REQUESTS.field(name), pa.array(values))
    return requests.filter(pa.array(placed.kept))


def active_range(choice: MappingChoice, capacity_bytes: int, block_bytes: int) -> tuple[int, int]:
    """Return the active range's first block and number of whole blocks.

    Raises UserError when the range is not on the drive.
    """
    if block_bytes < 1 or capacity_bytes < block_bytes:
        raise UserError(f"a drive of {capacity_bytes} B has no block of {block_bytes} B; replay on another drive")
    start = choice.range_start_bytes
    end = capacity_bytes if choice.range_bytes is None else start + choice.range_bytes
    if end > capacity_bytes or start >= capacity_bytes:
        raise UserError(
            f"the active range from {format_size(start)} to {format_size(max(start, end))} lies outside the drive of "
            f"{format_size(capacity_bytes)}; choose one within it"
        )
    low, count = -(-start // block_bytes), end // block_bytes + start // -block_bytes
    if count < 1:
        raise UserError(
            f"the active range from {format_size(start)} to {format_size(end)} has no whole block of "
            f"{format_size(block_bytes)}; choose a larger one"
        )
    return low, count


MOST_PARTS = 1 << 14
"""Most records of one request: 1 TiB, more than any device accepts at once."""


@dataclass
class Columns:
    """Columns of records, arrays of shape (records,).

    `after` is the index of a record or -1.
    """

    deadline_ns: Ints
    offset_bytes: Ints
    length_bytes: Ints
    think_ns: Ints
    after: Ints
    depth: Ints
    operation: Ints
    fua: Flags
    preflush: Flags
    latency_ns: Ints
    """UNKNOWN where the trace has no completion."""


class Parts:
    """How a batch of requests expands to records; the first has index `base`.

    Raises UserError for a request larger than any device accepts.
    """

    def __init__(self, batch: Batch, base: int) -> None:
        self._preflush = batch.flag("preflush") & (batch.operation == WRITE) & (batch.length_bytes > 0)
        pieces = np.where(batch.transfers, -(-batch.length_bytes // LONGEST_TRANSFER_BYTES), 1)
        if int(pieces.max(initial=0)) > MOST_PARTS:
            longest = int(batch.length_bytes[batch.transfers].max())
            raise UserError(f"a request of {format_size(longest)} fits no device; decode or import the trace again")
        self.split: Flags = pieces > 1
        """Requests that become several reads or writes."""
        self._counts = pieces + self._preflush
        after = base + np.cumsum(self._counts)
        self._first = after - self._counts
        self.last: Ints = after - 1
        """The last record of each request."""
        self.records = int(after[-1]) - base
        self.single = self.records == batch.rows
        """Whether each request is one record."""
        self.row_of = np.repeat(np.arange(batch.rows), self._counts)
        """The batch row of each record."""

    def expand(self, requests: Columns) -> Columns:
        """Return the records' columns from the requests' columns.

        Every `preflush` of the requests is False.

        A flush inherits the dependency of its write; the write, or each part of it, waits for the flush.
        """
        if self.single:
            return requests
        row_of, counts = self.row_of, self._counts
        records = Columns(**{column.name: getattr(requests, column.name)[row_of] for column in fields(Columns)})
        nth = np.arange(self.records) + self._first[0] - self._first[row_of]
        flushed = self._preflush[row_of]
        flush, piece = flushed & (nth == 0), nth - flushed
        moves = (counts[row_of] > 1) & ~flush
        begin = np.where(moves, piece * LONGEST_TRANSFER_BYTES, 0)
        rest = records.length_bytes - begin
        records.offset_bytes += begin
        records.length_bytes = np.where(moves, np.minimum(rest, LONGEST_TRANSFER_BYTES), rest)
        records.latency_ns[nth < counts[row_of] - 1] = UNKNOWN
        records.after[flushed & ~flush] = self._first[row_of][flushed & ~flush]
        records.think_ns[flushed & ~flush] = 0
        records.preflush = flush
        records.operation[flush] = FLUSH
        records.fua[flush] = False
        records.offset_bytes[flush] = records.length_bytes[flush] = 0
        return records
