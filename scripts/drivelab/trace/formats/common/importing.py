"""A foreign file to a trace: one volume of it, in order, in bounded memory."""

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
    """What an import read and what it left out; all counts are of lines or records of the file."""

    format: str
    volume: str
    """Name of the volume; empty where the format has none."""
    rows: int
    """Requests in the trace."""
    operations: dict[str, int]
    malformed: int
    malformed_first: list[dict[str, Any]]
    """Number and reason of the first ten malformed lines."""
    skipped: dict[str, int]
    """Lines that the format documents as something else than requests."""
    unmatched: dict[str, int]
    """Events without a partner, for formats of events."""
    other_volumes: int
    """Requests of other volumes."""
    out_of_order: int
    """Requests that came after one with a later time, and were put in their place."""
    zero_length: int
    """Reads and writes of no bytes."""
    unterminated: bool
    """The last line has no newline: it was taken as it is, but the file may be cut off there."""
    first_event: str | None
    """UTC, where the format has absolute times."""
    duration_s: float
    """From the first request to the last event."""
    time_resolution_ns: int

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def import_trace(
    path: Path,
    output: Path,
    *,
    format_name: str | None = None,
    volume: str | None = None,
    max_malformed: int = 0,
) -> ImportReport:
    """Import one volume of a file; without a format's name it is told from the content.

    Raises UserError when the format is not clear, the file is damaged, holds too many malformed lines, several volumes
    and none was chosen, no request, or rows too far from their order; then there is no output.
    """
    refuse_source(output, [path])
    with open_source(path) as source:
        layout = format_for(format_name, source.head, path)
        tally = Tally(path, max_malformed)
        with writable(output), TraceWriter(output) as writer:
            return _import(source, layout, tally, writer, volume)


def list_volumes(path: Path, *, format_name: str | None = None) -> tuple[dict[str, int], Tally]:
    """Requests of each volume of a file, most first, and what was no request; malformed lines are counted only.

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
        found = f"{tally.malformed} malformed {tally.unit}s" if tally.malformed else "nothing else that matters"
        raise UserError(
            f"{source.path}: holds no request of format {layout.name}, but {found}; check it, or name its format "
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
    """When the first request was, to the us; None where the format does not say or the number is no date."""
    if layout.epoch is None:
        return None
    try:
        when: datetime = layout.epoch + timedelta(microseconds=origin * layout.tick_ns // 1000)
    except OverflowError:
        return None
    return when.isoformat(timespec="microseconds")
