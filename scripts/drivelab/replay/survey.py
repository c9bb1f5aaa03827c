"""Survey a whole trace before its first request can be placed and timed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.replay.footprint import Union
from drivelab.trace.schema import OPERATIONS
from drivelab.trace.statistics.batch import UNKNOWN, Batch, Flags, Ints

COLUMNS = ("queue_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")
LONGEST_NS = 1 << 62
"""All times are earlier, so that the difference and the sum of two fit into 64 bits."""
FLUSH, DISCARD, ZEROES = (OPERATIONS.index(name) for name in ("flush", "discard", "write-zeroes"))


@dataclass
class Survey:
    """Totals of a trace's requests as dispatched."""

    gap_blocks: int
    touched: Union = field(init=False)
    """Blocks of reads and writes, with gaps up to `gap_blocks`."""
    requests: int = 0
    first_ns: int = 0
    last_queue_ns: int = 0
    last_ns: int = 0
    """Time of the last queueing or completion."""
    completed: int = 0
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
    totals = Survey((gap_bytes or 0) // block_bytes)
    for requests in batches:
        batch = Batch(requests)
        _times(totals, batch)
        first, end, nonempty = blocks(batch, block_bytes)
        moved = batch.transfers
        totals.transfers += int(moved.sum())
        totals.longest_blocks = max(totals.longest_blocks, int((end - first)[moved].max(initial=0)))
        totals.span_blocks = max(totals.span_blocks, int(end[moved].max(initial=0)))
        totals.reach_blocks = max(totals.reach_blocks, int(end[nonempty].max(initial=0)))
        if gap_bytes is not None:
            totals.touched.add(first[moved], end[moved])
    return totals


def _times(totals: Survey, batch: Batch) -> None:
    queue_ns, complete_ns = batch.queue_ns, batch.complete_ns
    if (totals.requests and queue_ns[0] < totals.last_queue_ns) or (np.diff(queue_ns) < 0).any():
        raise UserError("its requests are not in the order in which they were queued; decode or import the trace again")
    if queue_ns[0] < 0 or max(int(queue_ns[-1]), int(complete_ns.max())) >= LONGEST_NS:
        raise UserError("its times are impossible; decode or import the trace again")
    if not totals.requests:
        totals.first_ns = totals.last_ns = int(queue_ns[0])
    totals.requests += batch.rows
    totals.last_queue_ns = int(queue_ns[-1])
    totals.last_ns = max(totals.last_ns, totals.last_queue_ns, int(complete_ns.max()))
    totals.completed += int((complete_ns != UNKNOWN).sum())
