"""Convert a batch of requests to numpy arrays, and check its extents."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.errors import UserError
from drivelab.trace.schema import LONGEST_REQUEST_BYTES, OPERATIONS

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
UNKNOWN = int(np.iinfo(np.int64).min)
"""Replaces null in an array of times or identifiers."""
READ, WRITE = OPERATIONS.index("read"), OPERATIONS.index("write")


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
        column = self._requests.column(name)
        if column.null_count:
            column = pc.fill_null(column, pa.scalar(UNKNOWN, column.type))
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)

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

    @cached_property
    def backwards(self) -> int:
        """Number of requests with a contradictory time, set to UNKNOWN."""
        return int(
            ((self.ints("complete_ns") != self.complete_ns) | (self.ints("dispatch_ns") != self.dispatch_ns)).sum()
        )
