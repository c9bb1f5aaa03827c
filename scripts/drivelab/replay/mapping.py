"""Where the requests of a trace go on a drive: its active range stands for the trace's device.

Everything is counted in logical blocks. Reads and writes keep their length; discards and write-zeroes, which may be as
long as a drive, are cut off where the range ends.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from drivelab.errors import UserError
from drivelab.replay.choice import MappingChoice
from drivelab.replay.survey import DISCARD, FLUSH, ZEROES, Survey, blocks
from drivelab.trace.statistics.batch import Batch, Flags, Ints
from drivelab.units import format_amount, format_size

Method = Callable[[Ints, Ints, Flags], tuple[Ints, Ints]]
"""From first block, block after the last and whether a request may be cut off, to the same in the range."""


@dataclass(frozen=True)
class MappingReport:
    """What it took to bring a trace onto a drive. Before and after are both of the requests as dispatched."""

    method: str
    """The one used: `auto` became `exact` or `modulo`."""
    reason: str
    """Why this one, in words."""
    capacity_bytes: int
    logical_block_bytes: int
    range_start_bytes: int
    range_bytes: int
    """The active range in whole blocks."""
    requests_in_trace: int
    requests_merged: int
    """Queued requests that the block layer had merged into others before it dispatched them."""
    requests_moved: int
    """To another block of the range than they had of the trace's device."""
    requests_resized: int
    """Reads, writes and write-zeroes widened, discards shrunk to whole logical blocks."""
    requests_split: int
    """Into several, being longer than an engine moves at once."""
    requests_clipped: int
    """Discards and write-zeroes cut off at the end of the range, or short of what compaction removed."""
    requests_dropped: int
    """Those that nothing is left of: discards of less than a block or beyond the range, requests without a length."""
    footprint_before_bytes: int
    footprint_after_bytes: int
    """Distinct bytes that are read or written."""
    sequential_before_pct: float
    sequential_after_pct: float
    """Share of the reads and writes that go on where one of the last 32 of their direction ended."""
    retouched_before_bytes: int
    retouched_after_bytes: int
    """Bytes that are read or written, less the distinct ones: what requests overlap."""

    @property
    def requests_dispatched(self) -> int:
        return self.requests_in_trace - self.requests_merged

    def to_mapping(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


@dataclass(frozen=True)
class Placed:
    """A batch on the drive. Arrays have shape (rows,)."""

    offset_bytes: Ints
    length_bytes: Ints
    kept: Flags
    """False for what nothing is left of."""
    altered: bool
    """Whether any request is another than in the trace."""


class Mapper:
    """Places requests batch by batch and counts what that changes.

    Raises UserError when the range is none of the drive, and when the trace cannot be brought into it as chosen.
    """

    def __init__(self, choice: MappingChoice, found: Survey, capacity_bytes: int, block_bytes: int) -> None:
        self.capacity_bytes, self.block_bytes = capacity_bytes, block_bytes
        self.low_block, self.range_blocks = active_range(choice, capacity_bytes, block_bytes)
        self._found = found
        if found.longest_blocks > self.range_blocks:
            raise UserError(
                f"a request of {format_size(found.longest_blocks * block_bytes)} is longer than the active range of "
                f"{format_size(self.range_blocks * block_bytes)}; replay on a larger drive"
            )
        self.method, self.reason = self._choose(choice)
        self._place: Method = {
            "exact": self._exact, "modulo": self._modulo, "scale": self._scale, "compact": self._compact
        }[self.method]  # fmt: skip
        if self.method == "compact":
            self._prepare_compaction(choice.gap_bytes)
        self.moved = self.resized = self.clipped = self.dropped = 0

    def place(self, batch: Batch) -> Placed:
        """Offsets and lengths on the drive; flushes are at 0 and have no length."""
        first, end, some = blocks(batch, self.block_bytes)
        flush = batch.operation == FLUSH
        soft = (batch.operation == DISCARD) | (batch.operation == ZEROES)
        resized = some & ((end - first) * self.block_bytes != batch.length_bytes)
        first, end = np.where(some, first, 0), np.where(some, end, 0)
        new, after = self._place(first, end, soft)
        new, after = np.minimum(new, self.range_blocks), np.minimum(after, self.range_blocks)
        clipped = some & (after - new < end - first)
        some &= after > new
        moved, dropped = some & (new != first), ~some & ~flush
        self.resized += int((resized & some).sum())
        self.clipped += int((clipped & some).sum())
        self.moved += int(moved.sum())
        self.dropped += int(dropped.sum())
        return Placed(
            np.where(some, (new + self.low_block) * self.block_bytes, 0),
            np.where(some, (after - new) * self.block_bytes, 0),
            some | flush,
            altered=bool(self.low_block or (resized | clipped | moved | dropped).any()),
        )

    def _choose(self, choice: MappingChoice) -> tuple[str, str]:
        reach, room = self._amounts(self._found.reach_blocks, self.range_blocks)
        if self._found.reach_blocks <= self.range_blocks:
            if choice.method == "auto":
                return "exact", f"the trace reaches to {reach}, which is within the active range of {room}"
        elif choice.method == "auto":
            return "modulo", f"the trace reaches to {reach}, which is beyond the active range of {room}"
        elif choice.method == "exact":
            least = (self.low_block + self._found.reach_blocks) * self.block_bytes
            raise UserError(
                f"the trace reaches to {reach}, beyond the active range of {room}; replay on a drive of at least "
                f"{format_size(least)}, or choose the mapping modulo, scale or compact"
            )
        return choice.method, "as chosen"

    def _exact(self, first: Ints, end: Ints, soft: Flags) -> tuple[Ints, Ints]:
        return first, end

    def _modulo(self, first: Ints, end: Ints, soft: Flags) -> tuple[Ints, Ints]:
        return self._moved_back(first % self.range_blocks, end - first, soft)

    def _scale(self, first: Ints, end: Ints, soft: Flags) -> tuple[Ints, Ints]:
        # Blocks times blocks do not fit into 64 bits; a long double has 64 for the fraction alone.
        product = first.astype(np.longdouble) * np.longdouble(self.range_blocks)
        scaled = np.floor(product / np.longdouble(max(self._found.span_blocks, 1)))
        start = np.minimum(scaled, np.longdouble(self.range_blocks)).astype(np.int64)
        return self._moved_back(start, end - first, soft)

    def _moved_back(self, start: Ints, length: Ints, soft: Flags) -> tuple[Ints, Ints]:
        """What would reach beyond the end lies at the end, unless it may be cut off."""
        start = np.where(soft, start, np.minimum(start, self.range_blocks - length))
        return start, start + length

    def _compact(self, first: Ints, end: Ints, soft: Flags) -> tuple[Ints, Ints]:
        start = self._rank(first)
        after = start + end - first  # What is read or written lies within one extent.
        if soft.any():
            after[soft] = self._rank(end[soft])
        return start, after

    def _rank(self, block: Ints) -> Ints:
        """Blocks that are kept below each block."""
        at = np.searchsorted(self._begin, block, side="right") - 1
        below = np.minimum(block, self._end[at]) - self._begin[at] + self._base[at]
        return np.where(at < 0, 0, below)

    def _prepare_compaction(self, gap_bytes: int) -> None:
        self._begin, self._end = self._found.touched.extents()
        if self._begin.size and self._begin[0] <= gap_bytes // self.block_bytes:
            self._begin = self._begin.copy()
            self._begin[0] = 0
        after = np.cumsum(self._end - self._begin)
        self._base = after - (self._end - self._begin)
        if after.size and after[-1] > self.range_blocks:
            taken, room = self._amounts(int(after[-1]), self.range_blocks)
            raise UserError(
                f"what the trace touches takes {taken} when it is compacted, gaps up to {format_size(gap_bytes)} "
                f"included, the active range has {room}; choose a smaller gap, the mapping modulo, or a larger drive"
            )

    def _amounts(self, *counts: int) -> list[str]:
        """Numbers of blocks for people; exact ones where round ones would look the same."""
        sizes = [count * self.block_bytes for count in counts]
        texts = [format_amount(size) for size in sizes]
        return texts if len(set(texts)) == len(set(sizes)) else [format_size(size) for size in sizes]


def active_range(choice: MappingChoice, capacity_bytes: int, block_bytes: int) -> tuple[int, int]:
    """First block of the active range and how many whole ones it has; raises UserError when it is not on the drive."""
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
