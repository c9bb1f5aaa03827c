"""Import one volume of a foreign file as a trace, in bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.formats import format_for
from drivelab.trace.formats.common.model import Format, Tally
from drivelab.trace.formats.common.order import Sorter
from drivelab.trace.formats.common.requests import Requests
from drivelab.trace.formats.common.source import Source, open_source
from drivelab.trace.formats.common.volumes import VolumeFilter, count_rows
from drivelab.trace.outputs import refuse_source, writable
from drivelab.trace.schema import TraceWriter


@dataclass(frozen=True)
class ImportReport:
    """Report of an import; all counts are lines or records of the file."""

    format: str
    volume: str
    """Name of the volume; empty if the format has none."""
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

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)


def import_trace(
    path: Path,
    output: Path,
    *,
    format_name: str | None = None,
    volume: str | None = None,
    max_malformed: int = 0,
) -> ImportReport:
    """Import one volume of a file; without `format_name`, detect the format.

    Raises UserError and writes no output when the format is unclear, the file is damaged, has too many malformed lines,
    has several volumes and none is chosen, has no request, or has rows too far out of order.
    """
    refuse_source(output, [path])
    with open_source(path) as source:
        layout = format_for(format_name, source.head, path)
        tally = Tally(path, max_malformed)
        with writable(output), TraceWriter(output) as writer:
            return _import(source, layout, tally, writer, volume)


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


def _import(source: Source, layout: Format, tally: Tally, writer: TraceWriter, volume: str | None) -> ImportReport:
    volumes = VolumeFilter(source.path, volume)
    order = Sorter(source.path, layout, tally.unit)
    requests = Requests(source.path, layout, writer, tally.unit)
    for batch in _read(layout, source, tally):
        for sorted_batch in order.push(volumes.select(batch)):
            requests.add(sorted_batch)
    for sorted_batch in order.finish():
        requests.add(sorted_batch)
    requests.flush()
    if not requests.rows:
        volumes.refuse_nothing()
        others = f"{tally.malformed} malformed {tally.unit}s" if tally.malformed else "no malformed lines"
        raise UserError(
            f"{source.path}: has no request of format {layout.name} and {others}; check the file, or name its format "
            "with --format"
        )
    report = ImportReport(
        format=layout.name,
        volume=volumes.name,
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
        time_resolution_ns=layout.time_resolution_ns,
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
        "volume": report.volume,
        "malformed": report.malformed,
        "skipped": report.skipped,
        "unmatched": report.unmatched,
        "lost": {"malformed": report.malformed} if report.malformed else {},
        "duration_s": report.duration_s,
        "time_resolution_ns": report.time_resolution_ns,
        **({"first_event": report.first_event} if report.first_event else {}),
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
