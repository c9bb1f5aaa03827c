"""Turn a trace's requests into schedule records and their PLANNED rows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.core.behind import Behind
from drivelab.core.errors import UserError
from drivelab.replay.conflicts import Overlaps, accesses_of
from drivelab.replay.dependencies import Dependencies
from drivelab.replay.engine_records import FUA, SCHEDULE_RECORD, Records
from drivelab.replay.mapping import Columns, Parts
from drivelab.replay.placement import Placement
from drivelab.replay.timing import Clock, Depths
from drivelab.trace.parquet_schema import BATCH_ROWS, FLAGS, OPERATIONS
from drivelab.trace.statistics.batch import UNKNOWN, WRITE, Batch

ABOUT_KEY = b"drivelab"
"""Key of the file's metadata: JSON of drivelab.replay.prepare.Prepared.to_mapping."""
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
last part of a split request.
"""

_DELTA = ("deadline_ns", "offset_bytes", "after", "trace_queue_ns", "trace_latency_ns")
_DICTIONARY = ("operation", "length_bytes", "process", "pid", "cpu")


class PlannedWriter:
    """Write rows batch by batch, in a thread; the file appears only when `finish` completes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows = PLANNED.empty_table()
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")

    def __enter__(self) -> Self:
        self._writer = pq.ParquetWriter(
            self._part,
            PLANNED,
            compression="zstd",
            compression_level=1,
            use_dictionary=list(_DICTIONARY),
            column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
            write_statistics=False,
        )
        self._behind = Behind()
        return self

    def write(self, rows: pa.Table) -> None:
        """Append rows of the schema."""
        self._rows = pa.concat_tables([self._rows, rows])
        whole = self._rows.num_rows // BATCH_ROWS * BATCH_ROWS
        if whole:
            self._write(whole)

    def _write(self, count: int) -> None:
        self._behind.do(self._write_group, self._rows.slice(0, count))
        self._rows = self._rows.slice(count)

    def _write_group(self, rows: pa.Table) -> None:
        self._writer.write_table(rows, row_group_size=BATCH_ROWS)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Add metadata and move the file into place."""
        self._write(self._rows.num_rows)
        self._behind.wait()
        self._writer.add_key_value_metadata({ABOUT_KEY.decode(): json.dumps(about, sort_keys=True)})
        self._writer.close()
        self._part.replace(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._behind.__exit__(kind, error, at)
        self._writer.close()
        self._part.unlink(missing_ok=True)


COLUMNS = (
    "queue_ns", "complete_ns", "operation", *FLAGS, "offset_bytes", "length_bytes", "process", "pid", "cpu"
)  # fmt: skip
MOST_RECORDS = 2**32 - 2
"""A record stores the index of its dependency in 32 bits."""


class Part(NamedTuple):
    """Records of a schedule, and the same number of PLANNED rows."""

    records: Records
    rows: pa.Table


class Planner:
    """Turn requests into records and rows, batch by batch, and count them.

    Raises UserError for requests larger than any device accepts, and for more than a schedule holds.
    """

    def __init__(
        self, placement: Placement, clock: Clock, depths: Depths, dependencies: Dependencies,
        overlaps: Overlaps | None, *, has_deadlines: bool,
    ) -> None:  # fmt: skip
        self._placement, self._clock, self._depths, self._dependencies = placement, clock, depths, dependencies
        self._overlaps = overlaps
        self.overlapping = None if overlaps is None else 0
        """Requests so far that overlap another in flight in the trace; None if that is not known."""
        self._has_deadlines = has_deadlines
        self._records = 0
        self._first_ns: int | None = None
        self._last_ns = 0
        self._requests = np.zeros(len(OPERATIONS), np.int64)
        self._bytes = np.zeros(len(OPERATIONS), np.int64)

    @property
    def span_ns(self) -> int:
        """Time from the first deadline to the last."""
        return self._last_ns - (self._first_ns or 0)

    def plan(self, requests: pa.RecordBatch) -> Iterator[Part]:
        """Yield the records of the next requests (with COLUMNS), if any are left."""
        requests, batch = self._placement.place(requests)
        if batch.rows:
            yield self._part(requests, batch)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return records and their bytes by operation."""
        return {
            name: {"requests": int(self._requests[code]), "bytes": int(self._bytes[code])}
            for code, name in enumerate(OPERATIONS)
        }

    def _part(self, requests: pa.RecordBatch, batch: Batch) -> Part:
        parts = Parts(batch, self._records)
        self._records += parts.records
        self._placement.split += int(parts.split.sum())
        if self._records > MOST_RECORDS:
            raise UserError(f"the trace has more than {MOST_RECORDS} requests, too many for one replay; cut it")
        deadline_ns = self._clock.deadlines_ns(batch.queue_ns)
        self._first_ns = int(deadline_ns[0]) if self._first_ns is None else self._first_ns
        self._last_ns = int(deadline_ns[-1])
        after, think_ns = self._dependencies.of(requests, batch, parts.last)
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
        if self._overlaps is not None and self.overlapping is not None:
            accesses = accesses_of(columns.operation, columns.offset_bytes, columns.length_bytes)
            found = self._overlaps.of(accesses, batch.queue_ns[row_of], batch.complete_ns[row_of])
            self.overlapping += int(found.sum())
        if not parts.single:
            requests = requests.take(pa.array(row_of))
        self._requests += np.bincount(columns.operation, minlength=len(OPERATIONS))
        self._bytes += [int(columns.length_bytes[columns.operation == code].sum()) for code in range(len(OPERATIONS))]
        return Part(records, self._rows(requests, columns))

    def _rows(self, requests: pa.RecordBatch, columns: Columns) -> pa.Table:
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
        return pa.Table.from_arrays(
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
