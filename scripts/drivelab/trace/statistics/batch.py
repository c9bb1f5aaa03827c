"""Convert a batch of requests to numpy arrays, and check and unite its extents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import LONGEST_REQUEST_BYTES, OPERATIONS

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]
UNKNOWN = int(np.iinfo(np.int64).min)
"""Replaces null in an array of times or identifiers."""
READ, WRITE = OPERATIONS.index("read"), OPERATIONS.index("write")


def ints(column: pa.Array) -> Ints:
    """Return a column of integers, UNKNOWN where null."""
    if column.null_count:
        column = pc.fill_null(column, pa.scalar(UNKNOWN, column.type))
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)


def union(begin: Ints, end: Ints, gap: int = 0) -> tuple[Ints, Ints]:
    """Return the union of extents [begin, end), ascending, with gaps up to `gap` filled, and overwrite the arrays.

    Begins and ends are sorted separately: before a gap there are as many ends as begins. This is several times faster
    than sorting pairs.
    """
    if not begin.size:
        return begin, end
    begin.sort()
    end.sort()
    first = np.ones(begin.size, np.bool_)
    np.greater(begin[1:] - end[:-1], gap, out=first[1:])
    last = np.append(first[1:], True)
    return begin[first], end[last]


class Batch:
    """Requests in `queue_ns` order; arrays have shape (rows,), times are in ns.

    Raises UserError for impossible extents.
    """

    def __init__(self, requests: pa.RecordBatch) -> None:
        self._requests = requests
        self.rows: int = requests.num_rows
        self.queue_ns = self.ints("queue_ns")
        self.offset_bytes = self.ints("offset_bytes")
        self.length_bytes = self.ints("length_bytes")
        self.end_bytes = self.offset_bytes + self.length_bytes
        wrong = (self.offset_bytes < 0) | (self.length_bytes < 0) | (self.length_bytes >= LONGEST_REQUEST_BYTES)
        wrong |= self.end_bytes < self.offset_bytes
        if wrong.any():
            at = int(np.argmax(wrong))
            raise UserError(
                f"a request at {self.offset_bytes[at]} B of {self.length_bytes[at]} B fits no device; "
                "decode or import the trace again"
            )

    def ints(self, name: str) -> Ints:
        """Return a column of integers, UNKNOWN where null."""
        return ints(self._requests.column(name))

    def flag(self, name: str) -> Flags:
        return np.asarray(self._requests.column(name).to_numpy(zero_copy_only=False), np.bool_)

    @cached_property
    def operation(self) -> Ints:
        """Index into OPERATIONS of each request."""
        column = self._requests.column("operation")
        codes = np.array([OPERATIONS.index(name) for name in column.dictionary.to_pylist()] or [0], np.int64)
        return np.asarray(codes[column.indices.to_numpy(zero_copy_only=False)], np.int64)

    @cached_property
    def transfers(self) -> Flags:
        """Whether each request is a read or write of non-zero length."""
        return (self.operation <= max(READ, WRITE)) & (self.length_bytes > 0)

    @cached_property
    def complete_ns(self) -> Ints:
        """Completion times; UNKNOWN also if before the queue time."""
        times_ns = self.ints("complete_ns")
        return np.where(times_ns < self.queue_ns, UNKNOWN, times_ns)

    @cached_property
    def dispatch_ns(self) -> Ints:
        """Dispatch times; UNKNOWN also if before queueing or after completion."""
        times_ns = self.ints("dispatch_ns")
        late = (self.complete_ns != UNKNOWN) & (times_ns > self.complete_ns)
        return np.where((times_ns < self.queue_ns) | late, UNKNOWN, times_ns)


@dataclass
class Times:
    """When the requests of a trace were queued and completed."""

    requests: int = 0
    first_ns: int = 0
    """Time of the first queueing."""
    last_queue_ns: int = 0
    last_ns: int = 0
    """Time of the last queueing or completion."""
    completed: int = 0

    @property
    def duration_ns(self) -> int:
        return self.last_ns - self.first_ns

    def add_times(self, batch: Batch) -> None:
        """Count a batch; raises UserError for requests out of `queue_ns` order."""
        queue_ns, complete_ns = batch.queue_ns, batch.complete_ns
        if (self.requests and queue_ns[0] < self.last_queue_ns) or (np.diff(queue_ns) < 0).any():
            raise UserError(
                "its requests are not in the order in which they were queued; decode or import the trace again"
            )
        if not self.requests:
            self.first_ns = self.last_ns = int(queue_ns[0])
        self.requests += batch.rows
        self.last_queue_ns = int(queue_ns[-1])
        self.last_ns = max(self.last_ns, self.last_queue_ns, int(complete_ns.max()))
        self.completed += int((complete_ns != UNKNOWN).sum())
