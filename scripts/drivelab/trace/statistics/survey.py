"""The first pass over a trace: what the second must know before it can count with bounded memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.schema import OPERATIONS
from drivelab.trace.statistics.batch import READ, UNKNOWN, WRITE, Batch, Ints
from drivelab.trace.statistics.footprint import TouchedWords
from drivelab.trace.statistics.lengths import LengthCounts
from drivelab.trace.statistics.sample import Sample
from drivelab.trace.statistics.sequence import Sequence

COLUMNS = ("queue_ns", "dispatch_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")


@dataclass
class Survey:
    """Of a whole trace. Arrays have one value for each of OPERATIONS."""

    words: TouchedWords
    sample: Sample
    lengths: LengthCounts = field(default_factory=LengthCounts)
    requests: int = 0
    first_ns: int = 0
    """Queueing of the first request."""
    last_ns: int = 0
    """Last queueing or completion."""
    last_queue_ns: int = 0
    completed: int = 0
    low_bytes: int = 0
    high_bytes: int = 0
    """Reads and writes lie in [low_bytes, high_bytes)."""
    operations: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    bytes: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    sequential: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    sequential_bytes: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    strict: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))

    @property
    def duration_ns(self) -> int:
        return self.last_ns - self.first_ns


def survey(batches: Iterable[pa.RecordBatch], rows: int) -> Survey:
    """Survey of batches with COLUMNS of a trace of `rows` requests.

    Raises UserError for impossible extents and for requests that are not in the order of `queue_ns`.
    """
    found, sequence = Survey(TouchedWords(), Sample(rows)), Sequence()
    for one in batches:
        if one.num_rows:
            batch = Batch(one)
            _times(found, batch)
            _counts(found, batch, sequence)
            found.words.add(batch)
            found.sample.add(batch)
    return found


def _times(found: Survey, batch: Batch) -> None:
    queue_ns = batch.queue_ns
    if (found.requests and queue_ns[0] < found.last_queue_ns) or (np.diff(queue_ns) < 0).any():
        raise UserError("its requests are not in the order in which they were queued; decode or import the trace anew")
    if not found.requests:
        found.first_ns = found.last_ns = int(queue_ns[0])
    found.last_queue_ns = int(queue_ns[-1])
    found.last_ns = max(found.last_ns, found.last_queue_ns, int(batch.complete_ns.max()))
    found.completed += int((batch.complete_ns != UNKNOWN).sum())


def _counts(found: Survey, batch: Batch, sequence: Sequence) -> None:
    multi, strict = sequence.sequential(batch)
    found.lengths.add(batch, multi)
    length, count = batch.length_bytes, len(OPERATIONS)
    found.requests += batch.rows
    for operation in range(count):
        chosen = batch.operation == operation
        found.operations[operation] += chosen.sum()
        found.bytes[operation] += length[chosen].sum()
    for operation in (READ, WRITE):
        chosen = multi & (batch.operation == operation)
        found.sequential[operation] += chosen.sum()
        found.sequential_bytes[operation] += length[chosen].sum()
        found.strict[operation] += (strict & (batch.operation == operation)).sum()
    moved = batch.transfers
    if moved.any():
        low, high = int(batch.offset_bytes[moved].min()), int(batch.end_bytes[moved].max())
        found.low_bytes = min(found.low_bytes, low) if found.high_bytes else low
        found.high_bytes = max(found.high_bytes, high)
