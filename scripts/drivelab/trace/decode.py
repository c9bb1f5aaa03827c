"""Raw captures to tables of requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from drivelab.errors import UserError
from drivelab.trace import records
from drivelab.trace.match import SECTOR_BYTES, Matcher, Request
from drivelab.trace.records import CpuRecords
from drivelab.trace.schema import OPERATIONS, REQUESTS

REPORT_NAME = "capture.json"


@dataclass(frozen=True)
class Decoded:
    """A decoded capture."""

    requests: pa.Table
    """In the order of `queue_ns`, after the schema REQUESTS."""
    summary: dict[str, Any]
    """`events`, `events_by_action` (letters of blkparse; `notify` for notes), `requests`, `passthrough` (events of
    commands that are no block I/O), `device_flushes`, `unmatched` (by kind, see Matcher), `lost` (by kind)."""
    provenance: dict[str, Any]
    """Where the trace comes from and how whole it is: the capture's own report and the summary."""


def decode(source: Path) -> Decoded:
    """Decode a capture, given as its directory or as a base name; reads `capture.json` beside it where there is one.

    Raises UserError when there is no capture, it is of another format, or it holds no request.
    """
    files = records.cpu_files(source)
    cpus = [records.read_records(path) for path in files]
    report = _report(files[0].parent / REPORT_NAME)
    processes = {int(pid): name for pid, name in report.get("processes", {}).items()}
    for cpu in cpus:
        processes |= cpu.processes
    first_sector = int(report.get("first_sector", 0))
    events = merge(cpus)
    matcher = match(events)
    if not matcher.requests:
        raise UserError(f"{source}: holds no queued request ({len(events)} events); was the right device traced?")
    origin_ns = int(events["time_ns"][0])
    lost = _lost(cpus, report)
    summary = {
        "events": len(events),
        "events_by_action": events_by_action(events),
        "requests": len(matcher.requests),
        "passthrough": int(np.count_nonzero(_is(events, records.PASSTHROUGH))),
        "device_flushes": matcher.device_flushes,
        "unmatched": dict(matcher.unmatched),
        "lost": lost,
    }
    kept = {key: value for key, value in report.items() if key not in ("processes", "lost", "events")}
    if "realtime_offset_ns" in report:
        first = datetime.fromtimestamp((origin_ns + report["realtime_offset_ns"]) / 1e9, UTC)
        kept["first_event"] = first.isoformat(timespec="milliseconds")
    return Decoded(to_table(matcher.requests, origin_ns, first_sector, processes), summary, {**kept, **summary})


def merge(cpus: list[CpuRecords]) -> npt.NDArray[np.void]:
    """Events of all CPUs in the order of time; each CPU's own order decides between equal times."""
    events = np.concatenate([cpu.records for cpu in cpus])
    return events[np.argsort(events["time_ns"], kind="stable")]


def events_by_action(events: npt.NDArray[np.void]) -> dict[str, int]:
    """Number of events by blkparse's letter, timer unplugs with the others as `U`, notes as `notify`."""
    noted = _is(events, records.NOTIFY)
    numbers = Counter((events["action"][~noted] & 0xFFFF).tolist())
    found = Counter({"notify": int(np.count_nonzero(noted))})
    for number, count in numbers.items():
        found[records.ACTIONS[number] if 0 < number < len(records.ACTIONS) else f"action {number}"] += count
    return {name: count for name, count in sorted(found.items()) if count}


def match(events: npt.NDArray[np.void]) -> Matcher:
    """Requests of a merged stream of events."""
    matcher = Matcher()
    of_requests = events[~(_is(events, records.NOTIFY) | _is(events, records.PASSTHROUGH))]
    columns = ("time_ns", "action", "sector", "bytes", "error", "pid", "cpu")
    for event in zip(*(of_requests[name].tolist() for name in columns), strict=True):
        matcher.event(*event)
    matcher.finish()
    return matcher


def to_table(requests: list[Request], origin_ns: int, first_sector: int, processes: Mapping[int, str]) -> pa.Table:
    """The requests as a table; offsets count from `first_sector`, times from `origin_ns`.

    Version 7 of the format cannot tell a write of zeroes from a write, so there it is one.
    """
    actions = np.array([r.action for r in requests], np.int64)
    lengths = np.array([r.length_bytes for r in requests], np.int64)
    flushing = (actions & records.FLUSH) != 0
    operation = np.select(
        [(actions & records.DISCARD) != 0, flushing & (lengths == 0), (actions & records.WRITE) != 0],
        [OPERATIONS.index("discard"), OPERATIONS.index("flush"), OPERATIONS.index("write")],
        OPERATIONS.index("read"),
    )
    sectors = np.array([r.sector for r in requests], np.int64)
    columns: dict[str, Any] = {
        "queue_ns": [r.queue_ns - origin_ns for r in requests],
        "dispatch_ns": [None if r.dispatch_ns is None else r.dispatch_ns - origin_ns for r in requests],
        "complete_ns": [None if r.complete_ns is None else r.complete_ns - origin_ns for r in requests],
        "operation": pa.DictionaryArray.from_arrays(pa.array(operation, pa.int8()), list(OPERATIONS)),
        "sync": (actions & records.SYNC) != 0,
        "meta": (actions & records.META) != 0,
        "fua": (actions & records.FUA) != 0,
        "readahead": (actions & records.READAHEAD) != 0,
        "preflush": flushing & (lengths > 0),
        "offset_bytes": np.where(lengths > 0, (sectors - first_sector) * SECTOR_BYTES, 0),
        "length_bytes": lengths,
        "process": pa.array([processes.get(r.pid, "") for r in requests]).dictionary_encode(),
        "pid": [r.pid for r in requests],
        "cpu": [r.cpu for r in requests],
        "error": [r.error for r in requests],
        "dispatch_id": [None] * len(requests),
        "pieces": np.ones(len(requests), np.int32),
        "requeues": np.zeros(len(requests), np.int32),
    }
    return pa.table(columns, schema=REQUESTS)


def _is(events: npt.NDArray[np.void], bit: int) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (events["action"] & np.uint32(bit)) != 0
    return found


def _report(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}
    except ValueError:
        raise UserError(f"{path}: is no JSON; remove it to decode without what the capture said of itself") from None


def _lost(cpus: list[CpuRecords], report: Mapping[str, Any]) -> dict[str, int]:
    """Losses by kind, zeroes left out; the capture's own counts and what the files show."""
    lost = Counter(report.get("lost", {}))
    lost["sequence_gaps"] = sum(cpu.sequence_gaps for cpu in cpus)
    lost["truncated_files"] = sum(cpu.truncated_bytes > 0 for cpu in cpus)
    return {kind: count for kind, count in sorted(lost.items()) if count}
