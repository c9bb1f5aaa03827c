"""Import volumes of a foreign file as a trace, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.formats import format_for
from drivelab.trace.formats.common.sorting import Sorter, VolumeFilter, count_rows
from drivelab.trace.formats.common.source import Source, open_source
from drivelab.trace.formats.common.trace_format import LONGEST_NS, Format, Tally, Whole
from drivelab.trace.parquet_schema import (
    BATCH_ROWS,
    BEGINS,
    FLAGS,
    ISSUE,
    OPERATIONS,
    REQUESTS,
    REQUESTS_OF_VOLUMES,
    VOLUMES_KEY,
    TraceWriter,
)
from drivelab.trace.records import refuse_source, writable

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
        self.volumes: Counter[str] = Counter()
        """Requests of each volume, of batches that name it."""
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
        self.volumes.update(count_rows(batch) if "volume" in batch.schema.names else {})
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
        schema = REQUESTS
        if "volume" in batch.schema.names:
            schema, columns["volume"] = REQUESTS_OF_VOLUMES, batch["volume"]
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

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
        table = pa.Table.from_batches(self._waiting)
        self._writer.write(table.slice(0, rows))
        self._waiting = table.slice(rows).to_batches()
        self._waiting_rows = table.num_rows - rows


def _later(batch: pa.RecordBatch, name: str, queue: pa.Array) -> pa.Array:
    if name not in batch.schema.names:
        return pa.nulls(batch.num_rows, pa.int64())
    return pc.add(queue, batch[name])


@dataclass(frozen=True)
class ImportReport:
    """Report of an import; all counts are lines or records of the file."""

    format: str
    volume: str
    """Name of the volume, or names; empty if the format has none."""
    volumes: dict[str, int]
    """Requests of each volume, if the trace has several."""
    rows: int
    """Requests in the trace."""
    operations: dict[str, int]
    malformed: int
    malformed_first: list[dict[str, Any]]
    """Number and reason of the first ten malformed lines."""
    skipped: dict[str, int]
    """Documented lines other than requests, by kind."""
    unmatched: dict[str, int]
    """Unmatched events, for formats of events."""
    other_volumes: int
    """Requests of other volumes."""
    out_of_order: int
    """Requests that followed one with a later time, and were sorted."""
    zero_length: int
    """Reads and writes of length 0."""
    unterminated: bool
    """The last line has no newline. It was imported, but the file may be cut off there."""
    first_event: str | None
    """UTC, if the format has absolute times."""
    duration_s: float
    """Time from the first request to the last event."""
    time_resolution_ns: int
    begins: str | None
    """`issue` for a file of events without queue events: requests begin at their issue."""

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)


def import_trace(
    path: Path,
    output: Path,
    *,
    format_name: str | None = None,
    volume: str | Sequence[str] | None = None,
    max_malformed: int = 0,
) -> ImportReport:
    """Import one volume of a file, or several with one time base; without `format_name`, detect the format.

    Raises UserError and writes no output when the format is unclear, the file is damaged, has too many malformed lines,
    has several volumes and none is chosen, has no request, or has rows too far out of order.
    """
    chosen = () if volume is None else (volume,) if isinstance(volume, str) else tuple(dict.fromkeys(volume))
    refuse_source(output, [path])
    with open_source(path) as source:
        layout = format_for(format_name, source.head, path)
        tally = Tally(path, max_malformed)
        schema = REQUESTS_OF_VOLUMES if len(chosen) > 1 else REQUESTS
        with writable(output), TraceWriter(output, schema=schema) as writer:
            return _import(source, layout, tally, writer, chosen)


def list_volumes(path: Path, *, format_name: str | None = None) -> tuple[dict[str, int], Tally]:
    """Count the requests of each volume of a file, most first; also return the tally.

    Any number of malformed lines is accepted and counted.
    Raises UserError as `import_trace` does.
    """
    with open_source(path) as source:
        layout = format_for(format_name, source.head, path)
        tally = Tally(path, None)
        counts: Counter[str] = Counter()
        for batch in _read(layout, source, tally):
            counts.update(count_rows(batch))
        return dict(counts.most_common()), tally


def _import(source: Source, layout: Format, tally: Tally, writer: TraceWriter, chosen: Sequence[str]) -> ImportReport:
    volumes = VolumeFilter(source.path, chosen)
    order = Sorter(source.path, layout, tally.unit)
    requests = Requests(source.path, layout, writer, tally.unit)
    for batch in _read(layout, source, tally):
        for sorted_batch in order.push(volumes.select(batch)):
            requests.add(sorted_batch)
    for sorted_batch in order.finish():
        requests.add(sorted_batch)
    requests.flush()
    if volumes.several or not requests.rows:
        volumes.refuse_nothing()
    if not requests.rows:
        others = f"{tally.malformed} malformed {tally.unit}s" if tally.malformed else "no malformed lines"
        raise UserError(
            f"{source.path}: has no request of format {layout.name} and {others}; check the file, or name its format "
            "with --format"
        )
    report = ImportReport(
        format=layout.name,
        volume=volumes.name,
        volumes={name: requests.volumes[name] for name in chosen} if volumes.several else {},
        rows=requests.rows,
        operations=dict(requests.operations),
        malformed=tally.malformed,
        malformed_first=[{tally.unit: number, "reason": reason} for number, reason in tally.first],
        skipped=dict(tally.skipped),
        unmatched=dict(tally.unmatched),
        other_volumes=volumes.others,
        out_of_order=order.out_of_order,
        zero_length=requests.zero_length,
        unterminated=tally.unterminated,
        first_event=_first_event(layout, requests.origin),
        duration_s=requests.last_ns / 1e9,
        time_resolution_ns=tally.time_resolution_ns or layout.time_resolution_ns,
        begins=ISSUE if tally.from_dispatch else None,
    )
    writer.finish(_provenance(source.path, report))
    return report


def _read(layout: Format, source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    assert layout.read is not None
    return layout.read(source, tally)


def _provenance(path: Path, report: ImportReport) -> dict[str, Any]:
    return {
        "source": path.name,
        "format_imported": report.format,
        **({VOLUMES_KEY: report.volumes} if report.volumes else {"volume": report.volume}),
        "malformed": report.malformed,
        "skipped": report.skipped,
        "unmatched": report.unmatched,
        "lost": {"malformed": report.malformed} if report.malformed else {},
        "duration_s": report.duration_s,
        "time_resolution_ns": report.time_resolution_ns,
        **({"first_event": report.first_event} if report.first_event else {}),
        **({BEGINS: report.begins} if report.begins else {}),
    }


def _first_event(layout: Format, origin: int) -> str | None:
    """Return the first request's time to the us; None if unknown or not a date."""
    if layout.epoch is None:
        return None
    try:
        when: datetime = layout.epoch + timedelta(microseconds=origin * layout.tick_ns // 1000)
    except OverflowError:
        return None
    return when.isoformat(timespec="microseconds")
