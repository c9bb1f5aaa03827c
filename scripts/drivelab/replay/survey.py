"""What has to be known of a whole trace before its first request can be placed and timed."""

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
"""No time is later, so that the difference and the sum of two fit into 64 bits."""
FLUSH, DISCARD, ZEROES = (OPERATIONS.index(name) for name in ("flush", "discard", "write-zeroes"))


@dataclass
class Survey:
    """Of the requests of a trace as dispatched."""

    gap_blocks: int
    touched: Union = field(init=False)
    """Blocks of reads and writes, with gaps up to `gap_blocks`."""
    requests: int = 0
    first_ns: int = 0
    last_queue_ns: int = 0
    last_ns: int = 0
    """Last queueing or completion."""
    completed: int = 0
    transfers: int = 0
    longest_blocks: int = 0
    """Of reads and writes."""
    span_blocks: int = 0
    """Where the last block that is read or written ends."""
    reach_blocks: int = 0
    """Where the last block of any request ends."""

    def __post_init__(self) -> None:
        self.touched = Union(self.gap_blocks)


def blocks(batch: Batch, block_bytes: int) -> tuple[Ints, Ints, Flags]:
    """First block, block after the last, and whether there is a block at all, of each request.

    Requests are widened to whole blocks; discards, which would destroy what is beside them, shrink to the whole
    blocks within.
    """
    offset, length = batch.offset_bytes, batch.length_bytes
    first, end = offset // block_bytes, (batch.end_bytes - 1) // block_bytes + 1
    discard = batch.operation == DISCARD
    if discard.any():
        first[discard] = (offset[discard] - 1) // block_bytes + 1
        end[discard] = batch.end_bytes[discard] // block_bytes
    some = (length > 0) & (end > first) & (batch.operation != FLUSH)
    return first, end, some


def survey(batches: Iterable[pa.RecordBatch], block_bytes: int, gap_bytes: int | None) -> Survey:
    """Survey of batches with COLUMNS; what is touched is gathered only when there is a `gap_bytes`.

    Raises UserError for impossible extents and times, and for requests that are not in the order of `queue_ns`.
    """
    found = Survey((gap_bytes or 0) // block_bytes)
    for one in batches:
        batch = Batch(one)
        _times(found, batch)
        first, end, some = blocks(batch, block_bytes)
        moved = batch.transfers
        found.transfers += int(moved.sum())
        found.longest_blocks = max(found.longest_blocks, int((end - first)[moved].max(initial=0)))
        found.span_blocks = max(found.span_blocks, int(end[moved].max(initial=0)))
        found.reach_blocks = max(found.reach_blocks, int(end[some].max(initial=0)))
        if gap_bytes is not None:
            found.touched.add(first[moved], end[moved])
    return found


def _times(found: Survey, batch: Batch) -> None:
    queue_ns, complete_ns = batch.queue_ns, batch.complete_ns
    if (found.requests and queue_ns[0] < found.last_queue_ns) or (np.diff(queue_ns) < 0).any():
        raise UserError("its requests are not in the order in which they were queued; decode or import the trace anew")
    if queue_ns[0] < 0 or max(int(queue_ns[-1]), int(complete_ns.max())) >= LONGEST_NS:
        raise UserError("holds times that no trace has; decode or import it anew")
    if not found.requests:
        found.first_ns = found.last_ns = int(queue_ns[0])
    found.requests += batch.rows
    found.last_queue_ns = int(queue_ns[-1])
    found.last_ns = max(found.last_ns, found.last_queue_ns, int(complete_ns.max()))
    found.completed += int((complete_ns != UNKNOWN).sum())
