"""Raw captures to traces."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace.capturing.report import REPORT_NAME
from drivelab.trace.decoder import NEVER, Counts, Decoder
from drivelab.trace.records import cpu_files, device_number
from drivelab.trace.schema import TraceWriter, open_trace


def decode(
    source: Path, output: Path, *, device: str | None = None, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Decode a capture, given as its directory or as a base name, to a trace; returns its summary.

    Reads `capture.json` beside the raw files where there is one. `device` (MAJOR:MINOR) chooses one of several,
    `about` is added to the provenance. Memory is bounded whatever the capture's length.

    The summary has `events`, `events_by_action` (letters of blkparse; `notify` for notes), `requests`, `passthrough`
    (events of commands that are no block I/O), `device_flushes` (that the drive got), `unmatched` (by kind, see
    docs/traces.md) and `lost` (by kind; empty: the trace is whole).

    Raises UserError when there is no capture, it is of another format, or it holds no request.
    """
    files = cpu_files(source)
    report = _report(next(iter(files.values())).parent / REPORT_NAME)
    processes = {int(pid): name for pid, name in report.get("processes", {}).items()}
    number = None if device is None else device_number(device)
    first_pass = output.with_name(f".{output.name}.decoding")
    with Decoder(list(files.values()), processes, int(report.get("first_sector", 0)), number) as decoder:
        with TraceWriter(first_pass) as writer:
            for batch in decoder.batches():
                writer.write(batch)
            counts = decoder.counts()
            if not writer.rows:
                raise UserError(f"{source}: holds no queued request ({counts.events} events); was the device traced?")
            summary = _summary(counts, _lost(files, counts, report))
            writer.finish({**_provenance(report, counts), **summary, **(about or {})})
        try:
            corrections = decoder.corrections()
            if len(corrections):
                _correct(first_pass, corrections, output)
            else:
                first_pass.replace(output)
        finally:
            first_pass.unlink(missing_ok=True)
    return summary


def count_events(files: Sequence[Path]) -> Counts:
    """What raw files hold, without a trace made of it; raises UserError as `decode`."""
    with Decoder(files) as decoder:
        for _ in decoder.batches():
            pass
        return decoder.counts()


def _summary(counts: Counts, lost: dict[str, int]) -> dict[str, Any]:
    return {
        "events": counts.events,
        "events_by_action": counts.events_by_action,
        "requests": counts.requests,
        "passthrough": counts.passthrough,
        "other_devices": counts.other_devices,
        "device_flushes": counts.device_flushes,
        "unmatched": counts.unmatched,
        "lost": lost,
    }


def _provenance(report: Mapping[str, Any], counts: Counts) -> dict[str, Any]:
    kept = {key: value for key, value in report.items() if key not in ("processes", "lost", "events")}
    if "realtime_offset_ns" in report:
        first = datetime.fromtimestamp((counts.origin_ns + report["realtime_offset_ns"]) / 1e9, UTC)
        kept["first_event"] = first.isoformat(timespec="milliseconds")
    return kept


def _correct(source: Path, corrections: npt.NDArray[np.void], output: Path) -> None:
    """Write a trace anew with what was learned of some rows after they had been written."""
    first_row = 0
    with open_trace(source) as trace, TraceWriter(output) as writer:
        for batch in trace.batches():
            end = first_row + batch.num_rows
            here = slice(*np.searchsorted(corrections["row"], [first_row, end]))
            writer.write(_corrected(batch, corrections[here], first_row))
            first_row = end
        writer.finish({key: value for key, value in trace.provenance.items() if key != "format"})


def _corrected(batch: pa.RecordBatch, corrections: npt.NDArray[np.void], first_row: int) -> pa.RecordBatch:
    at = (corrections["row"] - np.uint64(first_row)).astype(np.int64)
    for name in ("dispatch_ns", "complete_ns", "dispatch_id", "error", "pieces", "requeues"):
        column = batch.column(name)
        null = column.is_null().to_numpy(zero_copy_only=False)
        values = column.fill_null(0).to_numpy(zero_copy_only=False).copy()
        values[at] = corrections[name]
        null[at] = corrections[name] == (-1 if name == "dispatch_id" else NEVER)
        index = batch.schema.get_field_index(name)
        batch = batch.set_column(index, batch.schema.field(name), pa.array(values, column.type, mask=null))
    return batch


def _report(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise UserError(f"{path}: is no JSON; remove it to decode without what the capture said of itself") from None


def _lost(files: Mapping[int, Path], counts: Counts, report: Mapping[str, Any]) -> dict[str, int]:
    """Losses by kind, zeroes left out; the capture's own counts and what the files show."""
    expected = report.get("cpus", range(max(files) + 1))
    lost = Counter(report.get("lost", {}))
    lost["sequence_gaps"] = counts.sequence_gaps
    lost["truncated_files"] = counts.truncated_files
    lost["missing_cpu_files"] = len(set(expected) - set(files))
    return {kind: count for kind, count in sorted(lost.items()) if count}
