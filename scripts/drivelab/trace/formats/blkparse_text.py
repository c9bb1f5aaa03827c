"""Default text output of blkparse, read and written.

The format is "%D %2c %8s %5T.%9t %5p %2a %3d" and the request.

Read: a queue event (Q) is a request. Its dispatch (D) and completion (C) have the same device, operation, sector and
length; EventMatcher follows merges and splits along the sectors. Flushes have no sector and pair in order: their
completion is the empty one at sector 0; the completion of the drive's own flush (`FN`) is skipped. Without D or C in
the text, those times are null. Without any Q, each D is a request of an unknown process, and the drive's own flushes
are requests. All other actions, passed-through SCSI commands, messages, and the final summary are counted and skipped.
Times count from the first request. A volume is a device, MAJOR,MINOR.

Written: Q (if known), D and C of each request in time order, on CPU 0 and PID 0 if unknown. Merges, splits and requeues
are not shown: each request has its own dispatch. Requests not in whole sectors are dropped and counted. Write-zeroes
are `WZ`, which blkparse prints for version 8 only.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from drivelab.trace.formats.common.event_match import Event, EventMatcher, Queued
from drivelab.trace.formats.common.lines import Lines
from drivelab.trace.formats.common.request_columns import flag_letters, parse_flags
from drivelab.trace.formats.common.source import Block, Source, open_source
from drivelab.trace.formats.common.trace_format import LARGEST, LONGEST_NS, Format, Losses, MalformedError, Tally, rows
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS, TraceFile, has_queue_times
from drivelab.trace.records import SECTOR_BYTES

_LINE = re.compile(
    r"(\d{1,8},\d{1,8})\s+(\d{1,9})\s+(\d{1,10})\s+(\d{1,10})\.(\d{9})\s+(\d{1,9})\s+([A-Za-z]{1,2})\s+(\S+)(?:\s+(.*))?"
)
_EXTENT = re.compile(r"(\d{1,19}) \+ (\d{1,10})(?: \( *\d+\))? \[(.*)\]")
_NO_EXTENT = re.compile(r"(?:(\d{1,19})(?: \( *\d+\))? )?\[(.*)\]")
_PASSED_THROUGH = re.compile(r"(?:\d+ )?\([0-9a-f .]*\) \[.*\]|\d+ \[.*\]")
_OTHER_ACTIONS = frozenset([*"ABFGIMPRSTUXm", "UT", "ZP", "ZU", "ZA"])
_SUMMARY = re.compile(
    rb"(CPU\d+ \(|Total \(|Reads |Writes |Read |Write |IO unplugs:|Timer unplugs:|Throughput \(|Events \(|Skips:|"
    rb"Input file |PC |Allocations |Dispatches |Device: ).*"
)
_UNKNOWN_PROCESS = "(null)"
_DEVICE = "8,0"


def _convert(block: Block, *, from_dispatch: bool = False) -> list[Event | str]:
    """Return the events of requests, and the kinds of all other lines."""
    try:
        lines = block.data.decode().split("\n")
    except UnicodeDecodeError:
        raise MalformedError("is not valid UTF-8") from None
    numbered = enumerate(map(str.strip, lines), block.first_line)
    return [_event(number, line, from_dispatch=from_dispatch) for number, line in numbered if line]


def _event(number: int, line: str, *, from_dispatch: bool) -> Event | str:
    match = _LINE.fullmatch(line)
    if match is None:
        raise MalformedError("is not of the form device, CPU, sequence, time, PID, action, operation, request")
    device, cpu, _, seconds, fraction, pid, action, letters, rest = match.groups("")
    if action in _OTHER_ACTIONS:
        return f"events {action}"
    if action not in ("Q", "D", "C"):
        raise MalformedError(f"action '{action}' is unknown")
    sector, sectors, note = _request(action, rest)
    if sector is None:
        return "passed-through commands"
    operation, flags = parse_flags(letters)
    of_the_drive = operation == "flush" or (not operation and "preflush" in flags)
    if of_the_drive and not from_dispatch:
        return "flushes of the drive"
    if not operation and not of_the_drive:
        return "events without data"
    if of_the_drive or not sectors:
        if not of_the_drive and (sector or from_dispatch):
            return "ends of flushing writes"
        operation, flags, sector, sectors = "flush", flags - {"preflush"}, 0, 0
    error = 0
    if action == "C":
        if not re.fullmatch(r"-?\d{1,5}", note):
            raise MalformedError(f"error '{note[:20]}' is not a number")
        error = abs(int(note))
        error = error if error < 1 << 15 else (1 << 16) - error  # the kernel's negative number, printed as unsigned
    time_ns = int(seconds) * 1_000_000_000 + int(fraction)
    if time_ns > LONGEST_NS:
        raise MalformedError("the time is longer than 146 years")
    process = (-1, -1, "") if from_dispatch else (int(cpu), int(pid), "" if note == _UNKNOWN_PROCESS else note)
    return Event(number, time_ns, action, device, operation, flags, sector, sectors, *process, error)


def _request(action: str, rest: str) -> tuple[int | None, int, str]:
    """Return first sector (None: passed-through command), sectors, text in brackets."""
    if match := _EXTENT.fullmatch(rest):
        sector, sectors = int(match[1]), int(match[2])
        if sector + sectors > LARGEST // SECTOR_BYTES:
            raise MalformedError("the request ends beyond 2^63 bytes")
        return sector, sectors, match[3]
    if (match := _NO_EXTENT.fullmatch(rest)) and (action == "C" or match[1] is None):
        return int(match[1] or 0), 0, match[2]
    if _PASSED_THROUGH.fullmatch(rest):
        return None, 0, ""
    raise MalformedError(f"'{rest[:40]}' is not a request")


def _comment(line: bytes) -> str | None:
    return "lines of the summary" if _SUMMARY.fullmatch(line) else None


def _read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    matcher, queued = EventMatcher(tally.unmatched), 0
    for batch in _batches(source, tally, LINES, matcher):
        queued += batch.num_rows
        yield batch
    if matcher.dispatches and not queued:
        tally.begin_with_dispatches()
        lines = Lines(partial(_convert, from_dispatch=True), _comment)
        with open_source(source.path) as again:
            yield from _batches(again, tally, lines, EventMatcher(tally.unmatched, from_dispatch=True))


def _batches(
    source: Source, tally: Tally, lines: Lines[list[Event | str]], matcher: EventMatcher
) -> Iterator[pa.RecordBatch]:
    for pieces in lines.read(source, tally):
        for events in pieces:
            for event in events:
                if isinstance(event, str):
                    tally.skipped[event] += 1
                else:
                    matcher.event(event)
        yield _batch(matcher.done())
    yield _batch(matcher.finish())


def _batch(requests: Iterable[Queued]) -> pa.RecordBatch:
    requests = list(requests)
    events = [request.event for request in requests]
    return rows(
        line=_whole(event.line for event in events),
        time=_whole(event.time_ns for event in events),
        operation=np.array([OPERATIONS.index(event.operation) for event in events], np.int8),
        offset_bytes=_whole(event.sector * SECTOR_BYTES for event in events),
        length_bytes=_whole(event.sectors * SECTOR_BYTES for event in events),
        response_ns=pa.array([_since(request.event, request.complete_ns) for request in requests], pa.int64()),
        dispatch_delay_ns=pa.array([_since(request.event, request.dispatch_ns) for request in requests], pa.int64()),
        volume=pa.array([event.volume for event in events], pa.string()).dictionary_encode(),
        process=pa.array([event.process for event in events], pa.string()).dictionary_encode(),
        pid=np.array([event.pid for event in events], np.int32),
        cpu=np.array([event.cpu for event in events], np.int32),
        error=np.array([request.error for request in requests], np.int32),
        **{flag: np.array([flag in event.flags for event in events], bool) for flag in FLAGS},
    )


def _whole(values: Iterable[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.fromiter(values, np.int64)


def _since(event: Event, time_ns: int | None) -> int | None:
    """Return the time since the queue event in ns.

    None for an unknown event, and for an earlier one (the clocks of CPUs may differ).
    """
    return None if time_ns is None or time_ns < event.time_ns else time_ns - event.time_ns


_COLUMNS = ("queue_ns", "dispatch_ns", "complete_ns", "operation", "offset_bytes", "length_bytes", "process", "pid",
            "cpu", "error", *FLAGS)  # fmt: skip


def _write(trace: TraceFile, sink: BinaryIO, _volume: str) -> Losses:
    losses = Losses()
    pending: list[tuple[int, int, str, dict[str, Any]]] = []
    sequence = order = 0
    queued = has_queue_times(trace.provenance)
    actions = {**({"Q": "queue_ns"} if queued else {}), "D": "dispatch_ns", "C": "complete_ns"}
    for batch in trace.batches(_COLUMNS):
        lines: list[str] = []
        for request in batch.to_pylist():
            if request["offset_bytes"] % SECTOR_BYTES or request["length_bytes"] % SECTOR_BYTES:
                losses.dropped["requests that are not in whole sectors"] += 1
                continue
            if request["length_bytes"] == 0 and request["operation"] != "flush":
                losses.dropped["requests of no bytes"] += 1
                continue
            while pending and pending[0][0] < request["queue_ns"]:
                sequence += 1
                lines.append(_line(sequence, *heapq.heappop(pending), queued=queued))
            for action, column in actions.items():
                if request[column] is not None:
                    order += 1
                    heapq.heappush(pending, (request[column], order, action, request))
        sink.write("".join(lines).encode())
    while pending:
        sequence += 1
        sink.write(_line(sequence, *heapq.heappop(pending), queued=queued).encode())
    return losses


def _line(sequence: int, time_ns: int, _order: int, action: str, request: dict[str, Any], *, queued: bool) -> str:
    letters = flag_letters(request["operation"], frozenset(flag for flag in FLAGS if request[flag]))
    if request["operation"] == "flush" and not queued:
        letters = letters.replace("FW", "FN")
    major, minor = _DEVICE.split(",")
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    sector, sectors = request["offset_bytes"] // SECTOR_BYTES, request["length_bytes"] // SECTOR_BYTES
    if action == "C":
        note = f"[{-request['error'] & 0xFFFF}]"
        extent = f"{sector} + {sectors} " if sectors else f"{sector} "
    else:
        note = f"[{request['process'] or _UNKNOWN_PROCESS}]"
        extent = f"{sector} + {sectors} " if sectors else ""
    return (
        f"{major:>3},{minor:<3} {max(request['cpu'], 0):2d} {sequence:8d} {seconds:5d}.{fraction:09d} "
        f"{max(request['pid'], 0):5d} {action:>2} {letters:>3} {extent}{note}\n"
    )


LINES = Lines(_convert, _comment)
FORMAT = Format(
    name="blkparse-text",
    title="blkparse, default text output",
    columns="device CPU sequence time PID action operation sector + sectors [process]",
    units="s, sectors of 512 bytes",
    looks_like=LINES.looks_like,
    read=_read,
    write=_write,
)
