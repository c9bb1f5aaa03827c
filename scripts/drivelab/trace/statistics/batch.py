"""Convert a batch of requests to numpy arrays, and check its extents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.parquet_schema import LONGEST_REQUEST_BYTES, OPERATIONS, has_queue_times

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

    @cached_property
    def backwards(self) -> int:
        """Number of requests with a contradictory time, set to UNKNOWN."""
        return int(
            ((self.ints("complete_ns") != self.complete_ns) | (self.ints("dispatch_ns") != self.dispatch_ns)).sum()
        )


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


def lost(provenance: Mapping[str, Any]) -> int:
    """Return the number of events that the tracer lost."""
    return sum(dict(provenance.get("lost") or {}).values())


def resolution_ns(provenance: Mapping[str, Any]) -> int:
    """Return the resolution of the trace's times in ns."""
    return int(provenance.get("time_resolution_ns") or 1)


def notes(provenance: Mapping[str, Any]) -> dict[str, str]:
    """Return a trace's marks, each with a short explanation."""
    marks: dict[str, str] = {}
    if lost(provenance):
        marks["lossy"] = f"{lost(provenance):,} events were lost ({_counts(provenance['lost'])})"
    left_out = int(provenance.get("malformed") or 0)
    if left_out:
        marks["incomplete"] = f"{left_out:,} malformed lines of the source were skipped"
    if provenance.get("unmatched"):
        reason = f"unmatched events: {_counts(provenance['unmatched'])}"
        marks["incomplete"] = "; ".join(filter(None, [marks.get("incomplete"), reason]))
    if not has_queue_times(provenance):
        marks["issue times"] = "requests begin when they were issued to the drive; times before are not known"
    if provenance.get("derived"):
        marks["derived"] = "derived by: " + ", ".join(_step(step) for step in provenance["derived"])
    if provenance.get("format_imported"):
        marks["imported"] = f"imported from {provenance.get('source', 'a file')} ({provenance['format_imported']})"
    if provenance.get("virtual"):
        marks["virtual"] = "captured on a virtual drive: a model computed the latencies"
    return marks


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{kind} {count:,}" for kind, count in counts.items())


def _step(step: Any) -> str:
    return str(step.get("step", step)) if isinstance(step, Mapping) else str(step)


MOST = 200


@dataclass(frozen=True)
class Intervals:
    """`count` intervals of `width_ns` from `origin_ns`; the last may be shorter.

    They cover the trace and its last instant, whose length is the resolution of the times.
    """

    origin_ns: int
    width_ns: int
    count: int
    span_ns: int

    @classmethod
    def of(cls, origin_ns: int, duration_ns: int, resolution_ns: int) -> Intervals:
        """Return at most MOST intervals, each a multiple of the resolution.

        So every interval has the same number of instants.
        """
        span_ns = duration_ns + resolution_ns
        width_ns = -(-span_ns // (MOST * resolution_ns)) * resolution_ns
        return cls(origin_ns, width_ns, -(-span_ns // width_ns), span_ns)

    def number(self, times_ns: Ints) -> Ints:
        """Return each time's interval; times beyond the trace get the first or last."""
        return np.clip((times_ns - self.origin_ns) // self.width_ns, 0, self.count - 1)

    def edges_ns(self) -> Ints:
        """Return the edges in ns from the origin, shape (count + 1,)."""
        return np.minimum(np.arange(self.count + 1) * self.width_ns, self.span_ns)
