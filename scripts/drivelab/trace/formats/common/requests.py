"""Convert sorted rows of a format to rows of a trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.errors import UserError
from drivelab.trace.formats.common.model import LONGEST_NS, Format, Whole
from drivelab.trace.schema import BATCH_ROWS, FLAGS, OPERATIONS, REQUESTS, TraceWriter

_MOVES_DATA = [OPERATIONS.index("read"), OPERATIONS.index("write")]


def _constant(kind: pa.DataType, value: Any) -> Callable[[int], pa.Array]:
    whole = pa.array(np.full(BATCH_ROWS, value, kind.to_pandas_dtype()))
    return lambda rows: whole[:rows] if rows <= BATCH_ROWS else pa.repeat(pa.scalar(value, kind), rows)


def _no_process(rows: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), [""])


_UNKNOWN: dict[str, Callable[[int], pa.Array]] = {
    **{flag: _constant(pa.bool_(), False) for flag in FLAGS},
    "process": _no_process,
    "pid": _constant(pa.int32(), -1),
    "cpu": _constant(pa.int32(), -1),
    "error": _constant(pa.int32(), 0),
    "dispatch_id": lambda rows: pa.nulls(rows, pa.int64()),
    "pieces": _constant(pa.int32(), 1),
    "requeues": _constant(pa.int32(), 0),
}
"""Default values of REQUESTS columns that a format may lack."""


class Requests:
    """Write sorted batches to a trace, with times from the first row, and count."""

    def __init__(self, path: Path, layout: Format, writer: TraceWriter, unit: str) -> None:
        self._path = path
        self._tick_ns = layout.tick_ns
        self._writer = writer
        self._unit = unit
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_rows = 0
        self._first: int | None = None
        self.rows = 0
        self.operations: Counter[str] = Counter()
        self.zero_length = 0
        self.last_ns = 0
        """Time of the last event."""

    @property
    def origin(self) -> int:
        """Tick of the first row; 0 without rows."""
        return self._first or 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows in `time` order; raise UserError if the trace exceeds LONGEST_NS."""
        if self._first is None:
            self._first = int(batch["time"][0].as_py())
        requests = self._request_batch(batch, self._queue_ns(batch))
        self._count(requests)
        self._waiting.append(requests)
        self._waiting_rows += requests.num_rows
        if self._waiting_rows >= BATCH_ROWS:
            self._write(BATCH_ROWS)

    def flush(self) -> None:
        """Write the remaining rows."""
        if self._waiting_rows:
            self._write(self._waiting_rows)

    def _queue_ns(self, batch: pa.RecordBatch) -> Whole:
        ticks = batch["time"].to_numpy() - self.origin
        too_late = ticks > LONGEST_NS // self._tick_ns
        if too_late.any():
            number = batch["line"][int(np.argmax(too_late))]
            raise UserError(
                f"{self._path}: the time of {self._unit} {number} is more than 146 years after the first; "
                f"fix or remove that {self._unit}"
            )
        queue_ns: Whole = ticks * self._tick_ns
        return queue_ns

    def _request_batch(self, batch: pa.RecordBatch, queue_ns: Whole) -> pa.RecordBatch:
        rows = batch.num_rows
        queue = pa.array(queue_ns)
        columns = {
            "queue_ns": queue,
            "dispatch_ns": _later(batch, "dispatch_delay_ns", queue),
            "complete_ns": _later(batch, "response_ns", queue),
            "operation": pa.DictionaryArray.from_arrays(batch["operation"], list(OPERATIONS)),
            "offset_bytes": batch["offset_bytes"],
            "length_bytes": batch["length_bytes"],
        }
        columns |= {name: batch[name] for name in _UNKNOWN if name in batch.schema.names}
        columns |= {name: make(rows) for name, make in _UNKNOWN.items() if name not in columns}
        return pa.RecordBatch.from_arrays([columns[name] for name in REQUESTS.names], schema=REQUESTS)

    def _count(self, requests: pa.RecordBatch) -> None:
        self.rows += requests.num_rows
        codes = requests["operation"].indices.to_numpy()
        counts = np.bincount(codes, minlength=len(OPERATIONS)).tolist()
        self.operations += Counter({name: count for name, count in zip(OPERATIONS, counts, strict=True) if count})
        empty = requests["length_bytes"].to_numpy() == 0
        if empty.any():
            self.zero_length += int(np.count_nonzero(empty & np.isin(codes, _MOVES_DATA)))
        last = [pc.max(requests[name]).as_py() or 0 for name in ("queue_ns", "complete_ns")]
        self.last_ns = max(self.last_ns, *last)

    def _write(self, rows: int) -> None:
        table = pa.Table.from_batches(self._waiting, REQUESTS)
        self._writer.write(table.slice(0, rows))
        self._waiting = table.slice(rows).to_batches()
        self._waiting_rows = table.num_rows - rows


def _later(batch: pa.RecordBatch, name: str, queue: pa.Array) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.int64())
    return pc.add(queue, batch[name])
