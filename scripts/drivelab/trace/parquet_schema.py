"""The trace file: a Parquet row per queued request, and provenance as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from drivelab.core.errors import UserError
from drivelab.core.files import open_regular, put_in_place

OPERATIONS = ("read", "write", "flush", "discard", "write-zeroes")
FLAGS = ("sync", "meta", "fua", "readahead", "preflush")
PROVENANCE_KEY = b"drivelab"
BEGINS, ISSUE = "begins", "issue"
"""Key and value in the provenance of a trace whose requests begin when they were issued to the drive; its `queue_ns`
are these times."""


def has_queue_times(provenance: Mapping[str, Any]) -> bool:
    """Return whether `queue_ns` are times of queueing."""
    return provenance.get(BEGINS) != ISSUE


FORMAT_VERSION = 2
BATCH_ROWS = 1 << 18
"""Rows of a row group; a reader of batches holds this much in memory, about 25 MB."""
_MOST_GROUP_ROWS, _MOST_GROUP_BYTES = 1 << 20, 1 << 28
"""Limits of a row group, which drivelab writes with BATCH_ROWS: a reader holds the pages of one, unpacked."""
LONGEST_REQUEST_BYTES = 1 << 58
"""Longer than any device's requests; sums of lengths stay well within 64 bits."""

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
"""Times are ns since the first event of the trace. Null `dispatch_ns` or `complete_ns`: the trace has no such event.

An empty flush has operation `flush`, offset 0 and length 0; `preflush` and `fua` are flags of a write with data. If
unknown, `process` is empty, and `pid` and `cpu` are -1. `error` is the errno of the completion. Requests that the block
layer merged share a `dispatch_id` (null: never dispatched, or unknown). A request that it split has `pieces` > 1 and
the `dispatch_id` of its first piece. `requeues` counts how often a dispatch was undone.
"""

_NUMBERS = ("time_resolution_ns", "malformed", "capacity_bytes")
"""Keys of the provenance that are whole numbers, if present."""
TIMES = ("queue_ns", "dispatch_ns", "complete_ns")
_EARLIEST_NS, _LATEST_NS = -(1 << 61), (1 << 62) - 1
"""73 years before the clock's origin, and 146 years after it."""


def _refuse_times(requests: pa.Table | pa.RecordBatch, path: Path) -> None:
    """Raise UserError for times whose differences exceed 64 bits."""
    for name in [name for name in TIMES if name in requests.schema.names]:
        for time_ns in pc.min_max(requests.column(name)).as_py().values():
            if time_ns is not None and not _EARLIEST_NS <= time_ns <= _LATEST_NS:
                raise UserError(
                    f"{path}: a request has {name} {time_ns}, which is out of range; decode or import the trace again"
                )


class RowsWriter:
    """Write rows of a schema batch by batch; the file appears only when `finish` completes it.

    The batches bound the memory. `lasting`: the file is whole after a loss of power, too.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, statistics: Sequence[str] = (), lasting: bool = False) -> None:
        self._path, self._schema = path, schema
        self._part = path.with_name(f".{path.name}.{os.getpid()}.part")
        self._statistics, self._lasting = list(statistics), lasting
        self.rows = 0

    def __enter__(self) -> Self:
        delta = [field.name for field in self._schema if field.type == pa.int64() and field.name != "length_bytes"]
        plain = [*delta, *(field.name for field in self._schema if field.type == pa.bool_())]
        self._writer = pq.ParquetWriter(
            self._part,
            self._schema,
            compression="zstd",
            compression_level=1,
            use_dictionary=[name for name in self._schema.names if name not in plain],
            column_encoding=dict.fromkeys(delta, "DELTA_BINARY_PACKED"),
            write_statistics=self._statistics,
            write_page_checksum=True,
        )
        return self

    def write(self, rows: pa.Table) -> None:
        """Append rows of the schema."""
        self._writer.write_table(rows, row_group_size=BATCH_ROWS)
        self.rows += rows.num_rows

    def finish(self, about: Mapping[str, Any]) -> None:
        """Add facts, JSON-able, and complete the file.

        This is the last call before the `with` block ends; without it there is no file.
        """
        self._writer.add_key_value_metadata({PROVENANCE_KEY.decode(): json.dumps(about, sort_keys=True)})
        self._writer.close()
        if self._lasting:
            put_in_place(self._part, self._path)
        else:
            self._part.replace(self._path)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._writer.close()
        self._part.unlink(missing_ok=True)


class TraceWriter(RowsWriter):
    """Write a trace, whose rows must be in `queue_ns` order; `finish` takes its provenance."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, REQUESTS, statistics=["queue_ns"], lasting=True)

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        return super().__enter__()

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Append rows of the schema; raise UserError for times out of range."""
        table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
        _refuse_times(table, self._path)
        super().write(table.cast(self._schema))

    def finish(self, about: Mapping[str, Any]) -> None:
        super().finish({"format": FORMAT_VERSION, **about})


def row_groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches of any size to tables of BATCH_ROWS rows; the last may have fewer."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        while rows >= BATCH_ROWS:
            table = pa.Table.from_batches(waiting)
            waiting, rows = table.slice(BATCH_ROWS).to_batches(), rows - BATCH_ROWS
            table = table.slice(0, BATCH_ROWS)
            yield table
            del table  # the reader may be done with it before the next one is whole
    if rows:
        yield pa.Table.from_batches(waiting)


class TraceFile:
    """An open trace: provenance, and batches of requests in `queue_ns` order."""

    def __init__(self, path: Path, parquet: pq.ParquetFile, provenance: dict[str, Any]) -> None:
        self._path = path
        self._parquet = parquet
        self.provenance = provenance
        self.rows: int = parquet.metadata.num_rows

    def batches(self, columns: Iterable[str] | None = None, most_rows: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield batches of at most `most_rows` rows (None: BATCH_ROWS) with `columns` (None: all).

        Raises UserError when the file is damaged.
        """
        batches = self._parquet.iter_batches(
            most_rows or BATCH_ROWS, columns=None if columns is None else list(columns)
        )
        for batch in sound_batches(batches, self._path, "capture or download it again"):
            _refuse_times(batch, self._path)
            yield batch


def sound_batches(batches: Iterable[pa.RecordBatch], path: Path, remedy: str) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a Parquet file; raise UserError with the remedy when it is damaged."""
    try:
        yield from batches
    except (OSError, pa.ArrowException) as error:
        raise UserError(f"{path}: is damaged ({str(error).splitlines()[0]}); {remedy}") from None


@contextmanager
def open_trace(path: Path) -> Iterator[TraceFile]:
    """Open a trace for reading in bounded memory.

    Raises UserError when the file is missing, unreadable or not a trace of this format.
    """
    try:
        open_regular(path).close()
        # No memory map and no read-ahead, so the batch bounds the memory.
        parquet = pq.ParquetFile(path, memory_map=False, pre_buffer=False, page_checksum_verification=True)
    except FileNotFoundError:
        raise UserError(f"{path}: the trace does not exist; check the name, or capture the trace") from None
    except (OSError, pa.ArrowInvalid) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error).splitlines()[0]
        raise UserError(
            f"{path}: is not a trace of drivelab (Parquet): {reason}; import another format with "
            f"'drivelab trace import', or capture or download it again"
        ) from None
    with parquet:
        provenance = _provenance((parquet.metadata.metadata or {}).get(PROVENANCE_KEY, b"{}"))
        if provenance.get("format") != FORMAT_VERSION or not parquet.schema_arrow.equals(REQUESTS):
            raise UserError(f"{path}: is not a trace of format {FORMAT_VERSION}; make one with 'drivelab trace decode'")
        _refuse_large_groups(path, parquet.metadata)
        yield TraceFile(path, parquet, provenance)


def _refuse_large_groups(path: Path, metadata: pq.FileMetaData) -> None:
    """Raise UserError for a row group beyond the limits, according to the footer."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    if any(group.num_rows > _MOST_GROUP_ROWS or group.total_byte_size > _MOST_GROUP_BYTES for group in groups):
        raise UserError(
            f"{path}: has a row group of more than {_MOST_GROUP_ROWS:,} requests or {_MOST_GROUP_BYTES >> 20} MiB, "
            f"which would fill the memory; drivelab writes {BATCH_ROWS:,} requests. Import its source again."
        )


def _provenance(text: bytes) -> dict[str, Any]:
    """Return the provenance, or an empty mapping if it is invalid."""
    try:
        facts = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    counts = [facts.get(key, {}) for key in ("lost", "unmatched")] if isinstance(facts, dict) else [None]
    sound = all(isinstance(kinds, dict) and all(isinstance(n, int) for n in kinds.values()) for kinds in counts)
    steps = facts.get("derived", []) if sound else None
    sound = isinstance(steps, list) and all(isinstance(step, dict) for step in steps)
    return facts if sound and all(_is_number(facts.get(key)) for key in _NUMBERS) else {}


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62)


_COLUMNS = ("queue_ns", "complete_ns", "operation", "length_bytes")


def extent(path: Path) -> tuple[float, int, int]:
    """Return duration in s, bytes written and bytes read.

    The duration is from the first queueing to the last queueing or completion. Raises UserError as
    drivelab.trace.parquet_schema.open_trace does.
    """
    first_ns: int | None = None
    last_ns = 0
    moved_bytes = {"write": 0, "read": 0}
    with open_trace(path) as trace:
        for batch in trace.batches(_COLUMNS):
            queue_ns, complete_ns = batch["queue_ns"], batch["complete_ns"]
            first_ns = queue_ns[0].as_py() if first_ns is None else first_ns
            last_ns = max(last_ns, queue_ns[-1].as_py(), pc.max(complete_ns).as_py() or 0)
            operation = batch["operation"].cast("string")
            for name in moved_bytes:
                chosen = pc.if_else(pc.equal(operation, name), batch["length_bytes"], 0)
                moved_bytes[name] += pc.sum(chosen).as_py()
    return (last_ns - (first_ns or 0)) / 1e9, moved_bytes["write"], moved_bytes["read"]
