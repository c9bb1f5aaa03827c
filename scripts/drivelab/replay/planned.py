"""Further columns of a schedule's records: one Parquet row per record."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from drivelab.trace.schema import BATCH_ROWS

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
    """Write rows batch by batch; the file appears only when `finish` completes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
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
        return self

    def write(self, rows: pa.Table) -> None:
        """Append rows of PLANNED."""
        self._writer.write_table(rows, row_group_size=BATCH_ROWS)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Add metadata and move the file into place."""
        self._writer.add_key_value_metadata({ABOUT_KEY.decode(): json.dumps(about, sort_keys=True)})
        self._writer.close()
        self._part.replace(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()
        self._part.unlink(missing_ok=True)
