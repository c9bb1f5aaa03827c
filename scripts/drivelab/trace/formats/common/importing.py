"""Import volumes of a foreign file as a trace, in bounded memory."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.core.units import some
from drivelab.trace.formats import format_for
from drivelab.trace.formats.common.source import open_source
from drivelab.trace.formats.common.trace_format import LONGEST_NS, Format, ImportReport, Tally, joined
from drivelab.trace.parquet_schema import (
    BEGINS,
    FLAGS,
    OPERATIONS,
    REQUESTS,
    TraceWriter,
    row_groups,
)
from drivelab.trace.records import refuse_source, writable

WINDOW_ROWS = 1 << 20
"""A row may be this many rows late."""
PIECE_ROWS = 1 << 16
SHOWN = 10
MOST_VOLUMES = 1 << 20
_MOVES_DATA = [OPERATIONS.index("read"), OPERATIONS.index("write")]
_OF_THE_REPORT = ("malformed", "skipped", "unmatched", "duration_s", "time_resolution_ns")
_UNKNOWN: dict[str, Any] = {
    **dict.fromkeys(FLAGS, False),
    "process": "",
    "pid": -1,
    "cpu": -1,
    "error": 0,
    "dispatch_id": None,
    "pieces": 1,
    "requeues": 0,
}
"""Default values of REQUESTS columns that a format may lack."""


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
        form = format_for(format_name, source.head, path)
        tally = Tally(path=path, limit=max_malformed)
        selected = _of_volume(form.read(source, tally), volume, tally)
        requests = _requests(in_time_order(selected, form.tick_ns, tally), form, tally)
        with writable(output), TraceWriter(output) as writer:
            for table in row_groups(requests):
                writer.write(table)
            if not tally.rows:
                others = f"{tally.malformed} malformed {tally.unit}s" if tally.malformed else "no malformed lines"
                raise UserError(
                    f"{path}: has no request of format {form.name} and {others}; check the file, or name its format "
                    "with --format"
                )
            report = _report(form, volume, tally)
            writer.finish(_provenance(path, report))
    return report


def in_time_order(batches: Iterable[pa.RecordBatch], tick_ns: int, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Sort batches in file order by their column `time`, in ticks; equal times keep the file's order.

    Sorted batches pass unchanged. A late row is merged only with the batches that have later times, so small disorder
    costs little. Raises UserError for a row older than the rows already yielded.
    """
    waiting: deque[pa.RecordBatch] = deque()
    rows = 0
    latest = released = np.iinfo(np.int64).min
    for batch in batches:
        if not batch.num_rows:
            continue
        times = _times(batch)
        so_far = np.maximum(np.maximum.accumulate(times), latest)
        latest = so_far[-1]
        tally.out_of_order += int(np.count_nonzero(times < so_far))
        if times.min() < released:
            late = int(np.argmax(times < released))
            raise UserError(
                f"{tally.path}: {tally.unit} {batch['line'][late]} is "
                f"{(int(released) - int(times[late])) * tick_ns / 1e9:.9g} s older than a row more than {WINDOW_ROWS} "
                "rows before it; sort the file by its time column first"
            )
        rows += batch.num_rows
        sorted_batch = _sorted(batch)
        affected = [sorted_batch]
        while waiting and _times(waiting[-1])[-1] > _times(sorted_batch)[0]:
            affected.append(waiting.pop())
        if len(affected) > 1:
            sorted_batch = _sorted(joined(affected[::-1]))
        waiting.extend(sorted_batch.slice(begin, PIECE_ROWS) for begin in range(0, sorted_batch.num_rows, PIECE_ROWS))
        while waiting and rows - waiting[0].num_rows >= WINDOW_ROWS:
            rows -= waiting[0].num_rows
            released = _times(waiting[0])[-1]
            yield waiting.popleft()
    yield from waiting


def _times(batch: pa.RecordBatch) -> Any:
    return batch["time"].to_numpy()


def _sorted(batch: pa.RecordBatch) -> pa.RecordBatch:
    times = _times(batch)
    if not (times[1:] < times[:-1]).any():
        return batch
    return batch.take(pa.array(np.argsort(times, kind="stable")))


def _of_volume(batches: Iterable[pa.RecordBatch], chosen: str | None, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Select the rows of the chosen volume, or of the only one; `tally.volumes` counts those of all volumes.

    Raises UserError when a volume must be chosen or the format has no volumes, and at the end when the file does not
    have the chosen one.
    """
    for batch in batches:
        has_volumes = count_volumes(batch, tally)
        if chosen and not has_volumes:
            raise UserError(f"{tally.path}: its format has no volumes; remove --volume {chosen}")
        if not chosen and len(tally.volumes) > 1:
            raise UserError(
                f"{tally.path}: has several volumes ({some(list(tally.volumes), SHOWN)}); choose one with --volume; "
                "--volume '?' names those with the most requests"
            )
        rows = batch.drop_columns(["volume"]) if has_volumes else batch
        if chosen and tally.volumes.keys() != {chosen}:
            names = batch["volume"]
            rows = rows.filter(pc.equal(names.indices, names.dictionary.index(chosen)))
        yield rows
    if chosen and tally.volumes and chosen not in tally.volumes:
        largest = [f"{name} ({count:,})" for name, count in Counter(tally.volumes).most_common()]
        raise UserError(
            f"{tally.path}: has no request of volume '{chosen}', only of (with their number) {some(largest, SHOWN)}; "
            "choose one with --volume"
        )


def count_volumes(batch: pa.RecordBatch, tally: Tally) -> bool:
    """Count the rows of each volume, up to MOST_VOLUMES; return whether the format has volumes.

    Raises UserError for more volumes, which no published trace has.
    """
    if "volume" not in batch.schema.names:
        if batch.num_rows:
            tally.volumes[""] = tally.volumes.get("", 0) + batch.num_rows
        return False
    volumes = batch["volume"]
    counts = np.bincount(volumes.indices.to_numpy(), minlength=len(volumes.dictionary)).tolist()
    for name, count in zip(volumes.dictionary.to_pylist(), counts, strict=True):
        if count:
            tally.volumes[name] = tally.volumes.get(name, 0) + count
    if len(tally.volumes) > MOST_VOLUMES:
        raise UserError(f"{tally.path}: has more than {MOST_VOLUMES:,} volumes; check the format, or split the file")
    return True


def _requests(batches: Iterable[pa.RecordBatch], form: Format, tally: Tally) -> Iterator[pa.RecordBatch]:
    """Yield sorted rows as requests, with times from the first; raise UserError beyond LONGEST_NS."""
    for batch in batches:
        if not tally.rows:
            tally.first_tick = int(batch["time"][0].as_py())
        ticks = batch["time"].to_numpy() - tally.first_tick
        too_late = ticks > LONGEST_NS // form.tick_ns
        if too_late.any():
            number = batch["line"][int(np.argmax(too_late))]
            raise UserError(
                f"{tally.path}: the time of {tally.unit} {number} is more than 146 years after the first; "
                f"fix or remove that {tally.unit}"
            )
        queue = pa.array(ticks * form.tick_ns)
        known = dict(zip(batch.schema.names, batch.columns, strict=True))
        known |= {
            "queue_ns": queue,
            "dispatch_ns": pc.add(queue, known.get("dispatch_delay_ns", pa.scalar(None, pa.int64()))),
            "complete_ns": pc.add(queue, known.get("response_ns", pa.scalar(None, pa.int64()))),
            "operation": pa.DictionaryArray.from_arrays(batch["operation"], list(OPERATIONS)),
        }
        for column in REQUESTS:
            if column.name not in known:
                known[column.name] = _unknown(column.name).slice(0, batch.num_rows)
        _count(batch, known["complete_ns"], int(ticks[-1]) * form.tick_ns, tally)
        yield pa.RecordBatch.from_arrays([known[name] for name in REQUESTS.names], schema=REQUESTS)


@lru_cache(len(_UNKNOWN))
def _unknown(name: str) -> pa.Array:
    """Return a column of PIECE_ROWS default values."""
    return pa.repeat(pa.scalar(_UNKNOWN[name], REQUESTS.field(name).type), PIECE_ROWS)


def _count(batch: pa.RecordBatch, complete_ns: pa.Array, last_queue_ns: int, tally: Tally) -> None:
    codes = batch["operation"].to_numpy()
    counts = np.bincount(codes, minlength=len(OPERATIONS)).tolist()
    tally.operations += Counter(dict(zip(OPERATIONS, counts, strict=True)))
    tally.rows += batch.num_rows
    empty = batch["length_bytes"].to_numpy() == 0
    if empty.any():
        tally.zero_length += int(np.count_nonzero(empty & np.isin(codes, _MOVES_DATA)))
    tally.last_ns = max(tally.last_ns, last_queue_ns, pc.max(complete_ns).as_py() or 0)


def _report(form: Format, volume: str | None, tally: Tally) -> ImportReport:
    known = {each.name: getattr(tally, each.name) for each in fields(ImportReport)}
    known |= {name: dict(known[name]) for name in ("operations", "skipped", "unmatched")}
    return replace(
        ImportReport(**known),
        format=form.name,
        volume=volume or next(iter(tally.volumes), ""),
        other_volumes=sum(tally.volumes.values()) - tally.rows,
        first_event=_first_event(form, tally.first_tick),
        duration_s=tally.last_ns / 1e9,
        time_resolution_ns=tally.time_resolution_ns or form.time_resolution_ns,
    )


def _provenance(path: Path, report: ImportReport) -> dict[str, Any]:
    return {
        "source": path.name,
        "format_imported": report.format,
        "volume": report.volume,
        **{name: getattr(report, name) for name in _OF_THE_REPORT},
        "lost": {"malformed": report.malformed} if report.malformed else {},
        **({"first_event": report.first_event} if report.first_event else {}),
        **({BEGINS: report.begins} if report.begins else {}),
    }


def _first_event(form: Format, first: int) -> str | None:
    """Return the first request's time to the us; None if unknown or not a date."""
    if form.epoch is None:
        return None
    try:
        when = datetime(form.epoch, 1, 1, tzinfo=UTC) + timedelta(microseconds=first * form.tick_ns // 1000)
    except OverflowError:
        return None
    return when.isoformat(timespec="microseconds")
