"""Default text output of blkparse, read and written.

The format is "%D %2c %8s %5T.%9t %5p %2a %3d" and the request (blkparse_fmt.c).

Read: the lines Q, M, F, X, D, R and C become the records that blkparse printed them from, and the decoder of captures
matches them (see docs/traces.md): with merges, splits, requeues and flush sequences. Without any Q, each D is a request
of an unknown process, and the drive's own flushes are requests. All other actions, passed-through SCSI commands,
messages, and the final summary are counted and skipped. Times count from the first request. A volume is a device,
MAJOR,MINOR. Lines need not be in order of time.

Written: Q (if known), D and C of each request in time order, on CPU 0 and PID 0 if unknown. Merges, splits and requeues
are not shown: each request has its own dispatch. A flush is a flush of the drive (`FN`), whose end completes it.
Requests not in whole sectors and from 4 GiB are dropped and counted. Write-zeroes are `WZ`, which blkparse prints for
version 8 only.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

import pyarrow as pa

from drivelab.trace import records
from drivelab.trace.formats.common.block_events import BlockEvent, BlockEvents
from drivelab.trace.formats.common.lines import Lines, text_lines
from drivelab.trace.formats.common.source import Block, Source
from drivelab.trace.formats.common.trace_format import (
    LONGEST_NS,
    Format,
    Losses,
    MalformedError,
    Tally,
    flag_letters,
    parse_flags,
)
from drivelab.trace.parquet_schema import FLAGS, TraceFile, has_queue_times
from drivelab.trace.records import SECTOR_BYTES

_LINE = re.compile(
    r"(\d{1,8},\d{1,8})\s+(\d{1,9})\s+(\d{1,10})\s+(\d{1,10})\.(\d{9})\s+(\d{1,9})\s+([A-Za-z]{1,2})\s+(\S+)(?:\s+(.*))?"
)
_EXTENT = re.compile(r"(\d{1,19}) \+ (\d{1,10})(?: \( *\d+\))? \[(.*)\]")
_NO_EXTENT = re.compile(r"(?:(\d{1,19})(?: \( *\d+\))? )?\[(.*)\]")
_SPLIT = re.compile(r"(\d{1,19}) / (\d{1,19}) \[.*\]")
_PASSED_THROUGH = re.compile(r"(?:\d+ )?\([0-9a-f .]*\) \[.*\]|\d+ \[.*\]")
_ACTIONS = frozenset("QMFXDRC")
_OTHER_ACTIONS = frozenset([*"ABGIPSTUm", "UT", "ZP", "ZU", "ZA"])
_SUMMARY = re.compile(
    rb"(CPU\d+ \(|Total \(|Reads |Writes |Read |Write |IO unplugs:|Timer unplugs:|Throughput \(|Events \(|Skips:|"
    rb"Input file |PC |Allocations |Dispatches |Device: ).*"
)
_UNKNOWN_PROCESS = "(null)"
_DEVICE = "8,0"
_MOST_SECTORS = 1 << 23
"""A record has 32 bits for the length in bytes."""
_LAST_SECTOR = 1 << 53
_WORDS = {
    "read": records.READ,
    "write": records.WRITE,
    "discard": records.WRITE | records.DISCARD,
    "write-zeroes": records.WRITE | records.WRITE_ZEROES,
    "flush": records.READ | records.FLUSH,
    "preflush": records.FLUSH,
    "sync": records.SYNC,
    "meta": records.META,
    "fua": records.FUA,
    "readahead": records.READAHEAD,
}


def _convert(block: Block) -> list[BlockEvent | str]:
    """Return the events of requests, and the kinds of all other lines."""
    return [_event(line) for line in text_lines(block)]


def _event(line: str) -> BlockEvent | str:
    match = _LINE.fullmatch(line)
    if match is None:
        raise MalformedError("is not of the form device, CPU, sequence, time, PID, action, operation, request")
    device, cpu, _, seconds, fraction, pid, action, letters, rest = match.groups("")
    if action in _OTHER_ACTIONS:
        return f"events {action}"
    if action not in _ACTIONS:
        raise MalformedError(f"action '{action}' is unknown")
    time_ns = int(seconds) * 1_000_000_000 + int(fraction)
    if time_ns > LONGEST_NS:
        raise MalformedError("the time is longer than 146 years")
    word = _word(letters)
    if action == "X" and word is not None and (match := _SPLIT.fullmatch(rest)):
        sector = _checked(int(match[1]), 0)
        front = (int(match[2]) - sector) % (1 << 32)  # blkparse prints the lower half of the second sector
        split_at = sector + front
        return BlockEvent(device, time_ns, action, word, sector, front % _MOST_SECTORS, 0, 0, "", 0, split_at)
    if match := _EXTENT.fullmatch(rest):
        sector, sectors, note = _checked(int(match[1]), int(match[2])), int(match[2]), match[3]
    elif (match := _NO_EXTENT.fullmatch(rest)) and (action in "CR" or match[1] is None):
        sector, sectors, note = _checked(int(match[1] or 0), 0), 0, match[2]
    elif _PASSED_THROUGH.fullmatch(rest):
        return "passed-through commands"
    else:
        raise MalformedError(f"'{rest[:40]}' is not a request")
    if word is None:
        return "events without data"
    error = _errno(note) if action in "CR" else 0
    process = "" if note == _UNKNOWN_PROCESS or action != "Q" else note
    return BlockEvent(device, time_ns, action, word, sector, sectors, int(cpu), int(pid), process, error)


@lru_cache(1024)
def _word(letters: str) -> int | None:
    """Return the kernel's flags; None for an event without data (`N`) that is no flush of the drive (`FN`)."""
    operation, flags = parse_flags(letters)
    if not operation and "preflush" not in flags:
        return None
    word = _WORDS[operation or "flush"]
    for flag in flags:
        word |= _WORDS[flag]
    return word


def _checked(sector: int, sectors: int) -> int:
    if sectors >= _MOST_SECTORS:
        raise MalformedError("the request has 4 GiB or more")
    if sector + sectors > _LAST_SECTOR:
        raise MalformedError("the request ends beyond 2^62 bytes")
    return sector


def _errno(note: str) -> int:
    if not re.fullmatch(r"-?\d{1,5}", note):
        raise MalformedError(f"error '{note[:20]}' is not a number")
    error = abs(int(note))
    return error if error < 1 << 15 else (1 << 16) - error  # the kernel's negative number, printed as unsigned


def _read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    with TemporaryDirectory(prefix="drivelab-import-") as folder:
        found = BlockEvents(Path(folder), source.path)
        for pieces in LINES.read(source, tally):
            for event in (event for events in pieces for event in events):
                if isinstance(event, str):
                    tally.skipped[event] += 1
                else:
                    found.add(event)
        yield from found.requests(tally)


_FLUSHED = "CF"
"""Completion of the drive's own flush, before the end of the queued flush."""
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
            if loss := _loss(request):
                losses.dropped[loss] += 1
                continue
            while pending and pending[0][0] < request["queue_ns"]:
                sequence += 1
                lines.append(_line(sequence, *heapq.heappop(pending), queued=queued))
            for action, column in actions.items():
                if request[column] is None:
                    continue
                order += 1
                if action == "C" and queued and request["operation"] == "flush" and request["dispatch_ns"] is not None:
                    heapq.heappush(pending, (request[column], order, _FLUSHED, request))
                    order += 1
                heapq.heappush(pending, (request[column], order, action, request))
        sink.write("".join(lines).encode())
    while pending:
        sequence += 1
        sink.write(_line(sequence, *heapq.heappop(pending), queued=queued).encode())
    return losses


def _loss(request: Mapping[str, Any]) -> str | None:
    """Return what a text cannot hold of a request, or None."""
    if request["offset_bytes"] % SECTOR_BYTES or request["length_bytes"] % SECTOR_BYTES:
        return "requests that are not in whole sectors"
    if request["length_bytes"] == 0 and request["operation"] != "flush":
        return "requests of no bytes"
    return "requests from 4 GiB" if request["length_bytes"] >= _MOST_SECTORS * SECTOR_BYTES else None


def _line(sequence: int, time_ns: int, _order: int, action: str, request: dict[str, Any], *, queued: bool) -> str:
    letters = flag_letters(request["operation"], frozenset(flag for flag in FLAGS if request[flag]))
    if request["operation"] == "flush" and (action == _FLUSHED or action == "D" or not queued):
        letters = letters.replace("FW", "FN")
    major, minor = _DEVICE.split(",")
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    sector, sectors = request["offset_bytes"] // SECTOR_BYTES, request["length_bytes"] // SECTOR_BYTES
    if action in ("C", _FLUSHED):
        note = f"[{-request['error'] & 0xFFFF}]"
        extent = f"{sector} + {sectors} " if sectors else f"{sector} "
    else:
        note = f"[{request['process'] or _UNKNOWN_PROCESS}]"
        extent = f"{sector} + {sectors} " if sectors else ""
    return (
        f"{major:>3},{minor:<3} {max(request['cpu'], 0):2d} {sequence:8d} {seconds:5d}.{fraction:09d} "
        f"{max(request['pid'], 0):5d} {action[0]:>2} {letters:>3} {extent}{note}\n"
    )


LINES = Lines(_convert, lambda line: "lines of the summary" if _SUMMARY.fullmatch(line) else None)
FORMATS = (
    Format(
        name="blkparse-text",
        title="blkparse, default text output",
        columns="device CPU sequence time PID action operation sector + sectors [process]",
        units="s, sectors of 512 bytes",
        looks_like=LINES.looks_like,
        read=_read,
        write=_write,
    ),
)
