"""Turn a trace's requests into schedule records and their PLANNED rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice
from drivelab.replay.dependencies import Dependencies
from drivelab.replay.engine_records import FUA, SCHEDULE_RECORD, Records
from drivelab.replay.mapping import Columns, Mapper, Parts
from drivelab.replay.overlaps import Overlaps
from drivelab.replay.survey import Survey
from drivelab.replay.timing import Clock, Depths
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS
from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch

PLANNED = pa.schema(
    [
        pa.field("deadline_ns", pa.int64()),
        pa.field("operation", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("fua", pa.bool_(), nullable=False),
        pa.field("preflush", pa.bool_(), nullable=False),
        pa.field("offset_bytes", pa.int64(), nullable=False),
        pa.field("length_bytes", pa.int64(), nullable=False),
        pa.field("process", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("pid", pa.int32(), nullable=False),
        pa.field("cpu", pa.int32(), nullable=False),
        pa.field("sync", pa.bool_(), nullable=False),
        pa.field("meta", pa.bool_(), nullable=False),
        pa.field("readahead", pa.bool_(), nullable=False),
        pa.field("after", pa.int64(), nullable=False),
        pa.field("trace_queue_ns", pa.int64(), nullable=False),
        pa.field("trace_latency_ns", pa.int64()),
    ]
)
"""`deadline_ns`: null for timing `asap`. `preflush`: this flush belongs to the next write. `after`: index of the row
whose completion this row waits for, -1 for none. `trace_queue_ns`: as in the trace. `trace_latency_ns`: from there to
the completion in the trace; null if unknown, on the flush of a preflush (its write has the value), and on all but the
last part of a split request. A file of such rows has drivelab.replay.prepare.Prepared.to_mapping as its metadata.
"""


COLUMNS = (
    "queue_ns", "complete_ns", "operation", *FLAGS, "offset_bytes", "length_bytes", "process", "pid", "cpu"
)  # fmt: skip
MOST_RECORDS = 2**32 - 2
"""A record stores the index of its dependency in 32 bits."""


class Planner:
    """Turn requests into records and rows, batch by batch, and count them.

    Raises UserError for settings that fit neither the trace nor the drive, for requests larger than any device accepts,
    and for more than a schedule holds.
    """

    def __init__(self, choice: ReplayChoice, times: Survey, capacity_bytes: int, block_bytes: int) -> None:
        self._clock, self.dependencies = Clock(choice.timing, times), Dependencies(choice.dependencies, times)
        self.mapper = Mapper(choice.mapping, times, capacity_bytes, block_bytes)
        self._depths = Depths(choice, times)
        self._overlaps = Overlaps() if times.completed else None
        self._has_deadlines = choice.timing.has_deadlines
        self._records = 0
        self._deadlines_ns = (0, 0)
        """First and last."""
        self._arrivals_ns = times.last_queue_ns - times.first_ns
        self._requests = np.zeros(len(OPERATIONS), np.int64)
        self._bytes = np.zeros(len(OPERATIONS), np.int64)

    @property
    def span_ns(self) -> int:
        """Time from the first deadline to the last; without deadlines, from first to last arrival in the trace."""
        return self._deadlines_ns[1] - self._deadlines_ns[0] if self._has_deadlines else self._arrivals_ns

    @property
    def idle_removed_ns(self) -> int:
        """Total time cut from gaps above the idle cap."""
        return self._clock.idle_removed_ns

    @property
    def overlapping(self) -> int | None:
        """Requests so far that overlap another in flight in the trace; None if the trace has no completions."""
        return None if self._overlaps is None else self._overlaps.count

    def plan(self, requests: pa.RecordBatch) -> Iterator[tuple[Records, pa.RecordBatch]]:
        """Yield the records of the next requests (with COLUMNS), if any are left, and as many PLANNED rows."""
        requests, batch = self.mapper.left(requests)
        if batch.rows:
            yield self._part(requests, batch)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return records and their bytes by operation."""
        return {
            name: {"requests": int(self._requests[code]), "bytes": int(self._bytes[code])}
            for code, name in enumerate(OPERATIONS)
        }

    def _part(self, requests: pa.RecordBatch, batch: Batch) -> tuple[Records, pa.RecordBatch]:
        parts = Parts(batch, self._records)
        first = not self._records
        self._records += parts.records
        self.mapper.split += int(parts.split.sum())
        if self._records > MOST_RECORDS:
            raise UserError(f"the trace has more than {MOST_RECORDS} requests, too many for one replay; cut it")
        deadline_ns = self._clock.deadlines_ns(batch.queue_ns)
        self._deadlines_ns = (int(deadline_ns[0]) if first else self._deadlines_ns[0], int(deadline_ns[-1]))
        after, think_ns = self.dependencies.of(requests, batch, parts.last)
        known = batch.complete_ns != UNKNOWN
        columns = parts.expand(
            Columns(
                deadline_ns=deadline_ns,
                offset_bytes=batch.offset_bytes,
                length_bytes=batch.length_bytes,
                think_ns=self._clock.thinks_ns(think_ns),
                after=after,
                depth=self._depths.of(batch.queue_ns, batch.complete_ns),
                operation=batch.operation,
                fua=batch.flag("fua") & (batch.operation == WRITE),
                preflush=np.zeros(batch.rows, np.bool_),
                latency_ns=np.where(known, batch.complete_ns - batch.queue_ns, UNKNOWN),
            )
        )
        records, row_of = _records(columns), parts.row_of
        if self._overlaps is not None:
            times = (batch.queue_ns[row_of], batch.complete_ns[row_of])
            self._overlaps.add(columns.operation, columns.offset_bytes, columns.length_bytes, *times)
        if not parts.single:
            requests = requests.take(pa.array(row_of))
        self._requests += np.bincount(columns.operation, minlength=len(OPERATIONS))
        self._bytes += [int(columns.length_bytes[columns.operation == code].sum()) for code in range(len(OPERATIONS))]
        return records, self._rows(requests, columns)

    def _rows(self, requests: pa.RecordBatch, columns: Columns) -> pa.RecordBatch:
        count = requests.num_rows
        computed = {
            "deadline_ns": pa.array(columns.deadline_ns) if self._has_deadlines else pa.nulls(count, pa.int64()),
            "operation": pa.DictionaryArray.from_arrays(pa.array(columns.operation.astype(np.int8)), list(OPERATIONS)),
            "fua": pa.array(columns.fua),
            "preflush": pa.array(columns.preflush),
            "offset_bytes": pa.array(columns.offset_bytes),
            "length_bytes": pa.array(columns.length_bytes),
            "after": pa.array(columns.after),
            "trace_queue_ns": requests.column("queue_ns"),
            "trace_latency_ns": pa.array(columns.latency_ns, mask=columns.latency_ns == UNKNOWN),
        }
        return pa.RecordBatch.from_arrays(
            [computed[name] if name in computed else requests.column(name) for name in PLANNED.names],
            schema=PLANNED,
        )


def _records(columns: Columns) -> Records:
    records = np.zeros(columns.after.size, SCHEDULE_RECORD)
    for name in ("deadline_ns", "offset_bytes", "length_bytes", "think_ns", "depth", "operation"):
        records[name] = getattr(columns, name)
    records["after"] = columns.after + 1
    records["flags"] = columns.fua * FUA
    return records
