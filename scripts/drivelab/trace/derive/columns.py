"""Shift columns of a batch of requests: times, offsets, dispatch numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.errors import UserError
from drivelab.trace.statistics.batch import Ints

TIMES = ("queue_ns", "dispatch_ns", "complete_ns")


def queue_ns(requests: pa.RecordBatch) -> Ints:
    """Return the queue times in ns, shape (rows,)."""
    return np.asarray(requests.column("queue_ns").to_numpy(zero_copy_only=False), np.int64)


def added(requests: pa.RecordBatch, names: Iterable[str], by: int | Ints) -> pa.RecordBatch:
    """Add one number, or an array of shape (rows,), to columns; null stays null."""
    if isinstance(by, int) and not by:
        return requests
    amount = pa.scalar(by, pa.int64()) if isinstance(by, int) else pa.array(by, pa.int64())
    for name in names:
        place = requests.schema.get_field_index(name)
        column = pc.add_checked(requests.column(place), amount)
        requests = requests.set_column(place, requests.schema.field(place), column)
    return requests


def ordered(batches: Iterable[pa.RecordBatch], source: Path) -> Iterator[pa.RecordBatch]:
    """Yield non-empty batches; raise UserError if rows are not in `queue_ns` order."""
    last = np.iinfo(np.int64).min
    for batch in batches:
        if not batch.num_rows:
            continue
        times = queue_ns(batch)
        if times[0] < last or (np.diff(times) < 0).any():
            raise UserError(
                f"{source}: its requests are not in the order in which they were queued; decode or import it again"
            )
        last = times[-1]
        yield batch
