"""The trace file: one row per queued request in Parquet, with its provenance as JSON in the file's metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drivelab.errors import UserError
from drivelab.files import open_regular

OPERATIONS = ("read", "write", "flush", "discard", "write-zeroes")
FLAGS = ("sync", "meta", "fua", "readahead", "preflush")
PROVENANCE_KEY = b"drivelab"
FORMAT_VERSION = 2
BATCH_ROWS = 1 << 18
"""Rows of a row group: what a reader of batches holds in memory, about 25 MB."""
LONGEST_REQUEST_BYTES = 1 << 58
"""No device has longer ones; sums of lengths stay far from the end of 64 bits."""

REQUESTS = pa.schema(
    [
        pa.field("queue_ns", pa.int64(), nullable=False),
        pa.field("dispatch_ns", pa.int64()),
        pa.field("complete_ns", pa.int64()),
        pa.field("operation", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        *(pa.field(flag, pa.bool_(), nullable=False) for flag in FLAGS),
        pa.field("offset_bytes", pa.int64(), nullable=False),
        pa.field("length_bytes", pa.int64(), nullable=False),
        pa.field("process", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("pid", pa.int32(), nullable=False),
        pa.field("cpu", pa.int32(), nullable=False),
        pa.field("error", pa.int32(), nullable=False),
        pa.field("dispatch_id", pa.int64()),
        pa.field("pieces", pa.int32(), nullable=False),
        pa.field("requeues", pa.int32(), nullable=False),
    ]
)
"""Times are ns since the first event of the trace. A null `dispatch_ns` or `complete_ns`: the trace has no such event.

An empty flush is operation `flush`, offset 0 and length 0; `preflush` and `fua` are flags of a write with data.
`process` is empty, `pid` and `cpu` are -1 where they are not known; `error` is the errno of the completion.
Requests that the block layer merged into one share a `dispatch_id` (null: never dispatched, or not known); one that
it split has `pieces` > 1 and the `dispatch_id` of its first piece; `requeues` counts how often a dispatch was undone.
"""

_DELTA = ("queue_ns", "dispatch_ns", "complete_ns", "offset_bytes", "dispatch_id")
_PLAIN = (*_DELTA, *FLAGS)


_NUMBERS = ("time_resolution_ns", "malformed", "capacity_bytes")
"""Of the provenance: whole numbers, where they are known."""
_TIMES = ("queue_ns", "dispatch_ns", "complete_ns")
_EARLIEST_NS, _LATEST_NS = -(1 << 61), (1 << 62) - 1
"""73 years before the origin of the clock, and 146 years after it."""


def _refuse_times(requests: pa.Table | pa.RecordBatch, path: Path) -> None:
    """Raise UserError for times whose differences have no room in 64 bits."""
    for name in [name for name in _TIMES if name in requests.schema.names]:
        for time_ns in pc.min_max(requests.column(name)).as_py().values():
            if time_ns is not None and not _EARLIEST_NS <= time_ns <= _LATEST_NS:
                raise UserError(
                    f"{path}: has a request with {name} {time_ns}, which is no time that a trace can have; decode or "
                    "import the trace again"
                )


class TraceWriter:
    """Writes a trace batch by batch; the file is there whole at the end of the `with` block, or not at all.

    Memory is bounded by the batches. Rows have to come in the order of `queue_ns`.
    """

    def __init__(self, path: Path, *, compression_level: int = 1) -> None:
        self._path = path
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._level = compression_level
        self.rows = 0

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._writer = pq.ParquetWriter(
            self._part,
            REQUESTS,
            compression="zstd",
            compression_level=self._level,
            use_dictionary=[name for name in REQUESTS.names if name not in _PLAIN],
            column_encoding=dict.fromkeys(_DELTA, "DELTA_BINARY_PACKED"),
            write_statistics=["queue_ns"],
            write_page_checksum=True,
        )
        return self

    def write(self, requests: pa.Table | pa.RecordBatch) -> None:
        """Append rows after the schema REQUESTS; raises UserError for times that no reader could compute with."""
        table = pa.Table.from_batches([requests]) if isinstance(requests, pa.RecordBatch) else requests
        _refuse_times(table, self._path)
        self._writer.write_table(table.cast(REQUESTS), row_group_size=BATCH_ROWS)
        self.rows += table.num_rows

    def finish(self, provenance: Mapping[str, Any]) -> None:
        """Say where the trace comes from; the last call before the block ends, without it there will be no file."""
        body = json.dumps({"format": FORMAT_VERSION, **provenance}, sort_keys=True)
        self._writer.add_key_value_metadata({PROVENANCE_KEY.decode(): body})
        self._writer.close()
        self._part.replace(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()
        self._part.unlink(missing_ok=True)


def write_trace(requests: pa.Table | Iterable[pa.RecordBatch], provenance: Mapping[str, Any], path: Path) -> None:
    """Write a whole trace in one step, packed as small as it gets: for traces that are kept and shipped."""
    with TraceWriter(path, compression_level=9) as writer:
        for batch in [requests] if isinstance(requests, pa.Table) else requests:
            writer.write(batch)
        writer.finish(provenance)


class TraceFile:
    """An open trace: its provenance, and its requests batch by batch in the order of `queue_ns`."""

    def __init__(self, path: Path, parquet: pq.ParquetFile, provenance: dict[str, Any]) -> None:
        self._path = path
        self._parquet = parquet
        self.provenance = provenance
        self.rows: int = parquet.metadata.num_rows

    def batches(self, columns: Iterable[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Batches of at most BATCH_ROWS rows with all or some columns; raises UserError when the file is damaged."""
        batches = self._parquet.iter_batches(BATCH_ROWS, columns=None if columns is None else list(columns))
        while True:
            try:
                batch = next(batches, None)
            except (OSError, pa.ArrowInvalid) as error:
                reason = str(error).splitlines()[0]
                raise UserError(f"{self._path}: is damaged ({reason}); capture or fetch it anew") from None
            if batch is None:
                return
            _refuse_times(batch, self._path)
            yield batch


@contextmanager
def open_trace(path: Path) -> Iterator[TraceFile]:
    """Open a trace for reading in bounded memory.

    Raises UserError when the file is missing, unreadable or no trace of this format.
    """
    try:
        open_regular(path).close()
        # Not memory-mapped and not buffered ahead: memory is bounded by the batch.
        parquet = pq.ParquetFile(path, memory_map=False, pre_buffer=False, page_checksum_verification=True)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such trace; check the name or capture it") from None
    except (OSError, pa.ArrowInvalid) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: is no readable Parquet file ({reason}); capture or fetch it anew") from None
    with parquet:
        provenance = _provenance((parquet.metadata.metadata or {}).get(PROVENANCE_KEY, b"{}"))
        if provenance.get("format") != FORMAT_VERSION or not parquet.schema_arrow.equals(REQUESTS):
            raise UserError(f"{path}: is no trace of format {FORMAT_VERSION}; make one with 'drivelab trace decode'")
        yield TraceFile(path, parquet, provenance)


def _provenance(text: bytes) -> dict[str, Any]:
    """The provenance; empty for what is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    counts = [found.get(key, {}) for key in ("lost", "unmatched")] if isinstance(found, dict) else [None]
    sound = all(isinstance(one, dict) and all(isinstance(count, int) for count in one.values()) for one in counts)
    return found if sound and all(_is_number(found.get(key)) for key in _NUMBERS) and _is_list(found) else {}


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62)


def _is_list(provenance: Mapping[str, Any]) -> bool:
    """Whether the steps that a trace was derived by, if it was, are a list of mappings."""
    steps = provenance.get("derived", [])
    return isinstance(steps, list) and all(isinstance(step, dict) for step in steps)


def read_trace(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """All requests in the order of `queue_ns` and their provenance; for traces that fit into memory.

    Raises UserError as `open_trace` does.
    """
    with open_trace(path) as trace:
        return pa.Table.from_batches(trace.batches(), REQUESTS), trace.provenance
