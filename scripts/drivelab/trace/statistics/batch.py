"""A batch of requests as numpy arrays, checked for what no trace may hold."""

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
"""Stands for null in an array of times or identifiers."""
READ, WRITE = OPERATIONS.index("read"), OPERATIONS.index("write")


class Batch:
    """Requests in the order of `queue_ns`; arrays have shape (rows,), times are in ns.

    Raises UserError for extents that no device has.
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
                "decode or import the trace anew"
            )

    def ints(self, name: str) -> Ints:
        """A column of integers; UNKNOWN where it is null."""
        column = self._requests.column(name)
        if column.null_count:
            column = pc.fill_null(column, pa.scalar(UNKNOWN, column.type))
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int64)

    def flag(self, name: str) -> Flags:
        return np.asarray(self._requests.column(name).to_numpy(zero_copy_only=False), np.bool_)

    @cached_property
    def operation(self) -> Ints:
        """Place in OPERATIONS."""
        column = self._requests.column("operation")
        codes = np.array([OPERATIONS.index(name) for name in column.dictionary.to_pylist()] or [0], np.int64)
        return np.asarray(codes[column.indices.to_numpy(zero_copy_only=False)], np.int64)

    @cached_property
    def transfers(self) -> Flags:
        """Reads and writes that move data."""
        return (self.operation <= max(READ, WRITE)) & (self.length_bytes > 0)

    @cached_property
    def complete_ns(self) -> Ints:
        """UNKNOWN also where the trace has the completion before the queueing."""
        found = self.ints("complete_ns")
        return np.where(found < self.queue_ns, UNKNOWN, found)

    @cached_property
    def dispatch_ns(self) -> Ints:
        """UNKNOWN also where the trace has the dispatch before the queueing or after the completion."""
        found = self.ints("dispatch_ns")
        late = (self.complete_ns != UNKNOWN) & (found > self.complete_ns)
        return np.where((found < self.queue_ns) | late, UNKNOWN, found)

    @cached_property
    def backwards(self) -> int:
        """Requests with a time that was set to UNKNOWN because it contradicts another."""
        return int(
            ((self.ints("complete_ns") != self.complete_ns) | (self.ints("dispatch_ns") != self.dispatch_ns)).sum()
        )
