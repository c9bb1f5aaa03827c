"""Survey a trace in the first pass, so that the second pass can bound its memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.statistics.batch import READ, WRITE, Batch, Ints, Times
from drivelab.trace.statistics.footprint import TouchedWords
from drivelab.trace.statistics.latencies import LengthCounts
from drivelab.trace.statistics.streams import Sequence

COLUMNS = ("queue_ns", "dispatch_ns", "complete_ns", "operation", "offset_bytes", "length_bytes")


@dataclass(kw_only=True)
class Survey(Times):
    """Totals of a whole trace. Arrays have one value for each of OPERATIONS."""

    words: TouchedWords
    lengths: LengthCounts = field(default_factory=LengthCounts)
    low_bytes: int = 0
    high_bytes: int = 0
    """Reads and writes lie in [low_bytes, high_bytes)."""
    operations: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    bytes: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    sequential: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    sequential_bytes: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    strict: Ints = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))


def survey(batches: Iterable[pa.RecordBatch]) -> Survey:
    """Survey batches with COLUMNS of a trace.

    Raises UserError for impossible extents and for requests out of `queue_ns` order.
    """
    totals, sequence = Survey(words=TouchedWords()), Sequence()
    for requests in batches:
        if requests.num_rows:
            batch = Batch(requests)
            totals.add_times(batch)
            _counts(totals, batch, sequence)
            totals.words.add(batch)
    return totals


def _counts(totals: Survey, batch: Batch, sequence: Sequence) -> None:
    multi, strict = sequence.sequential(batch)
    totals.lengths.add(batch, multi)
    length, count = batch.length_bytes, len(OPERATIONS)
    for operation in range(count):
        chosen = batch.operation == operation
        totals.operations[operation] += chosen.sum()
        totals.bytes[operation] += length[chosen].sum()
    for operation in (READ, WRITE):
        chosen = multi & (batch.operation == operation)
        totals.sequential[operation] += chosen.sum()
        totals.sequential_bytes[operation] += length[chosen].sum()
        totals.strict[operation] += (strict & (batch.operation == operation)).sum()
    moved = batch.transfers
    if moved.any():
        low, high = int(batch.offset_bytes[moved].min()), int(batch.end_bytes[moved].max())
        totals.low_bytes = min(totals.low_bytes, low) if totals.high_bytes else low
        totals.high_bytes = max(totals.high_bytes, high)
