"""Default text output of blkparse.

The format is "%D %2c %8s %5T.%9t %5p %2a %3d" and the request (blkparse_fmt.c).

The lines Q, M, F, X, D, R and C become the records that blkparse printed them from, and the decoder of captures
matches them (see docs/traces.md): with merges, splits, requeues and flush sequences. Without any Q, each D is a request
of an unknown process, and the drive's own flushes are requests. All other actions, passed-through SCSI commands,
messages, and the final summary are counted and skipped. Times count from the first request. A volume is a device,
MAJOR,MINOR. Lines need not be in order of time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa

from drivelab.trace import records
from drivelab.trace.formats.common.block_events import BlockEvent, BlockEvents
from drivelab.trace.formats.common.lines import Lines, text_lines
from drivelab.trace.formats.common.source import Block, Source
from drivelab.trace.formats.common.trace_format import (
    LONGEST_NS,
    Format,
    MalformedError,
    Tally,
    parse_flags,
)

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


LINES = Lines(_convert, lambda line: "lines of the summary" if _SUMMARY.fullmatch(line) else None)
FORMATS = (
    Format(
        name="blkparse-text",
        title="blkparse, default text output",
        columns="device CPU sequence time PID action operation sector + sectors [process]",
        units="s, sectors of 512 bytes",
        looks_like=LINES.looks_like,
        read=_read,
    ),
)
