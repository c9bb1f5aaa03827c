"""Decode raw captures to traces."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from drivelab.core.behind import Behind
from drivelab.core.errors import UserError
from drivelab.trace.capturing.capture_report import REPORT_NAME
from drivelab.trace.decoder import Counts, Decoder
from drivelab.trace.parquet_schema import BEGINS, ISSUE, TraceWriter
from drivelab.trace.records import cpu_files, device_number, is_merged_dump, writable

FIRST_EVENT_MONOTONIC = "first_event_monotonic_ns"
"""Key in a capture's provenance: CLOCK_MONOTONIC at time 0 of the trace. Both tracers use that clock: ftrace by setting
(trace_clock mono), blktrace always (ktime_get in kernel/trace/blktrace.c)."""

_SUMMARY = (
    "events", "events_by_action", "requests", "passthrough", "other_devices", "device_flushes", "unmatched",
)  # fmt: skip


def decode(
    source: Path, output: Path, *, device: str | None = None, about: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Decode a capture (directory or base name) to a trace; return its summary.

    Reads `capture.json` beside the raw files if it exists. `device` (MAJOR:MINOR) chooses one of several; `about` is
    added to the provenance. Memory is bounded for any length of capture.

    The summary has `events`, `events_by_action` (letters of blkparse; `notify` for notes), `requests`, `passthrough`
    (events of commands other than block I/O), `device_flushes` (flushes sent to the drive), `unmatched` (by kind, see
    docs/traces.md) and `lost` (by kind; empty: the trace is complete).

    A capture without queue events (`blktrace -a issue -a complete`) has a row for each dispatch, which begins with it;
    summary and provenance say so (BEGINS).

    Raises UserError when the capture is missing, has another format, or contains no request.
    """
    files = cpu_files(source)
    report = _report(next(iter(files.values())).parent / REPORT_NAME)
    if is_merged_dump(files):  # it has all CPUs, and its times do not count from the start of the host
        report = {key: value for key, value in report.items() if key not in ("cpus", "realtime_offset_ns")}
    processes = {int(pid): name for pid, name in report.get("processes", {}).items()}
    number = None if device is None else device_number(device)
    opened = partial(Decoder, list(files.values()), processes, int(report.get("first_sector", 0)), number)
    begins: dict[str, str] = {}
    corrections = None
    with writable(output, files.values()):
        while (
            True
        ):  # again from dispatches if nothing is queued, and with corrections to rows that were already written
            with opened(bool(begins), corrections) as decoder, TraceWriter(output) as writer:
                with Behind() as behind:
                    for batch in decoder.batches():
                        behind.do(writer.write, batch)
                counts = decoder.counts()
                actions = counts.events_by_action
                if not writer.rows and not begins and "D" in actions and "Q" not in actions:
                    begins = {BEGINS: ISSUE}
                    continue
                if not writer.rows:
                    raise UserError(f"{source}: {without_begin(actions) or _reason(counts)}")
                if corrections is None and len(late := decoder.corrections()):
                    corrections = late
                    continue
                summary = (
                    {name: getattr(counts, name) for name in _SUMMARY} | {"lost": _lost(files, counts, report)} | begins
                )
                writer.finish({**_provenance(report, counts), **summary, **(about or {})})
                return summary


def _provenance(report: Mapping[str, Any], counts: Counts) -> dict[str, Any]:
    kept = {key: value for key, value in report.items() if key not in ("processes", "lost", "events")}
    if "realtime_offset_ns" in report:
        first = datetime.fromtimestamp((counts.origin_ns + report["realtime_offset_ns"]) / 1e9, UTC)
        kept["first_event"] = first.isoformat(timespec="milliseconds")
        kept[FIRST_EVENT_MONOTONIC] = counts.origin_ns
    return kept


def without_begin(actions: Mapping[str, int]) -> str | None:
    """Return why a trace has no request, from its events by action: it has completions only; else None."""
    if not actions.get("C") or actions.get("Q") or actions.get("D"):
        return None
    return (
        f"has {actions['C']} completions (C) but no queue and no issue events (Q, D), so the begin of every request is "
        "unknown; capture again with these, as 'blktrace -d DEVICE -a queue -a issue -a complete' or "
        "'drivelab capture' do, and print all of them"
    )


def _reason(counts: Counts) -> str:
    reason = f"{counts.events} events; was the device traced?"
    if counts.other_devices:
        reason = f"all {counts.other_devices} events belong to other devices; choose another with --device"
    elif counts.truncated_files and not counts.events:
        reason = "a file ends within its first record; capture again"
    return f"has no queued request ({reason})"


def _report(path: Path) -> dict[str, Any]:
    remedy = "remove the file to decode without the capture's report"
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError):
        raise UserError(f"{path}: is not JSON; {remedy}") from None
    if not isinstance(report, dict):
        raise UserError(f"{path}: is not a JSON object; {remedy}")
    for key, (well_formed, what) in _REPORT_KEYS.items():
        if key in report and not well_formed(report[key]):
            raise UserError(f"{path}: key '{key}' is not {what}; {remedy}")
    return report


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 1 << 53


_REPORT_KEYS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "processes": (
        lambda value: (
            isinstance(value, dict)
            and all(pid.isdecimal() and len(pid) < 10 and isinstance(name, str) for pid, name in value.items())
        ),
        "names by PID",
    ),
    "lost": (lambda value: isinstance(value, dict) and all(map(_is_count, value.values())), "counts by kind"),
    "cpus": (lambda value: isinstance(value, list) and all(map(_is_count, value)), "a list of CPUs"),
    "first_sector": (_is_count, "a number of sectors"),
    "realtime_offset_ns": (lambda value: isinstance(value, int) and abs(value) < 1 << 62, "a number of ns"),
}
"""The keys used from a capture's report, and their checks."""


def _lost(files: Mapping[int, Path], counts: Counts, report: Mapping[str, Any]) -> dict[str, int]:
    """Return non-zero losses by kind, from the capture's report and its files."""
    expected = report.get("cpus", range(max(files) + 1))
    lost = Counter(report.get("lost", {}))
    lost["sequence_gaps"] = counts.sequence_gaps
    lost["truncated_files"] = counts.truncated_files
    lost["missing_cpu_files"] = len(set(expected) - set(files))
    return {kind: count for kind, count in sorted(lost.items()) if count}
