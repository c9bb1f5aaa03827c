"""Text output of biosnoop (bcc or libbpf), with or without -Q, -P (bcc) and -t (libbpf).

TIME(s) is the completion time in seconds since the first completion (biosnoop(8)); TIMESTAMP, with -t, is the time of
day when the line was printed, to the millisecond. LAT(ms) is the time from dispatch to completion; QUE(ms), with -Q, is
the time from queue to dispatch. Dispatch and queue times are therefore differences with a resolution of 0.01 ms, or
1 ms with -t. Without -Q, or where QUE is -1, the queue time is unknown and the dispatch time replaces it. Rows are in
completion order and are sorted.

T is R or W with bcc (BPF Compiler Collection), which prints R for everything but writes; the libbpf version prints the
kernel's flags. A request of length 0 is a flush. A volume is a DISK. Offsets are sectors of 512 bytes from the start of
the whole disk. P, with -P, is the pattern: S, R or ?; it is not kept.

bcc prints BYTES in at least seven places ("%-7s"), and P or a number of ms in at least seven ("%7.2f") right after it.
Where both fill their places, they run together, as `10485761234.56`. BYTES are whole sectors, and both numbers have
their least length and no leading zero. If this leaves one cut, the line is read, else it is malformed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import FlagColumns, decimal_ns
from drivelab.trace.formats.common.source import Block, Source
from drivelab.trace.formats.common.trace_format import LARGEST, Format, MalformedError, Tally, rows
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.records import SECTOR_BYTES

_LINE = re.compile(
    r"(\d+\.\d{1,9}|\d\d:\d\d:\d\d\.\d{3})\s+(\S.{0,15}?)\s+(\d{1,9})\s+(\S+)\s+([A-Z]+)\s+(\d{1,20})\s+"
    r"(?:(\d{1,10})(?:\s+|\s*[SR?]\s+)(?:(-?\d{1,12}(?:\.\d{1,6})?)\s+)?(\d{1,12}(?:\.\d{1,6})?)"
    r"|(\d{11,22}\.\d\d)(?:\s+(\d{1,12}\.\d\d))?)"
)
_HEADER = re.compile(
    rb"TIME(?:\(s\)|STAMP)?\s+COMM\s+PID\s+DISK\s+T\s+SECTOR\s+BYTES\s+(?:P\s+)?(?:QUE\(ms\)\s+)?LAT\(ms\)"
)
_CLOCK = re.compile(rb"(?m)^\s*\d\d:\d\d:\d\d\.\d{3}\s")
_CLOCK_NS = 1_000_000
_DAY_NS = 86_400 * 1_000_000_000
_MS_PER_S = 1000
"""Milliseconds are parsed as seconds, in ns: 0.74 ms is 0.74 s / 1000."""


def _convert(block: Block) -> pa.RecordBatch:
    numbers: list[int] = []
    fields: list[tuple[str, ...]] = []
    for number, line in enumerate(_text(block).split("\n"), block.first_line):
        if not line.strip():
            continue
        match = _LINE.fullmatch(line.strip())
        if match is None:
            raise MalformedError("is not of the form TIME COMM PID DISK T SECTOR BYTES [P] [QUE] LAT")
        numbers.append(number)
        groups = match.groups("")
        fields.append((*groups[:6], *(_cut(*groups[9:]) if groups[9] else groups[6:9])))
    time, process, pid, disk, kind, sector, length, queued, latency = zip(*fields, strict=True) if fields else ((),) * 9
    flags = FlagColumns(kind)
    length_bytes = np.array([int(text) for text in length], np.int64)
    sectors = [0 if empty else int(text) for text, empty in zip(sector, length_bytes == 0, strict=True)]
    if sectors and max(sectors) > LARGEST // SECTOR_BYTES:
        raise MalformedError("SECTOR is beyond 2^63 bytes")
    complete_ns = decimal_ns(pa.array([_seconds(text) for text in time], pa.string()), "TIME(s)")
    latency_ns = _of_ms(latency, "LAT(ms)")
    queued_ns = _of_ms(["0" if text.startswith("-") else text or "0" for text in queued], "QUE(ms)")
    return rows(
        line=np.array(numbers, np.int64),
        time=complete_ns - latency_ns - queued_ns,
        operation=np.where(length_bytes == 0, OPERATIONS.index("flush"), flags.operation).astype(np.int8),
        offset_bytes=np.array(sectors, np.int64) * SECTOR_BYTES,
        length_bytes=length_bytes,
        response_ns=latency_ns + queued_ns,
        dispatch_delay_ns=queued_ns,
        volume=pa.array(disk, pa.string()).dictionary_encode(),
        process=pa.array(["" if name == "?" else name for name in process], pa.string()).dictionary_encode(),
        pid=np.array([int(text) for text in pid], np.int32),
        **flags.columns,
    )


def _seconds(text: str) -> str:
    """Return a time in seconds; a time of day counts from midnight."""
    if ":" not in text:
        return text
    hours, minutes, seconds = text.split(":")
    return f"{int(hours) * 3600 + int(minutes) * 60 + int(seconds[:2])}{seconds[2:]}"


def _cut(text: str, after: str) -> tuple[str, str, str]:
    """Return BYTES, QUE (or blank) and LAT of a line in which BYTES and the next column run together.

    `after` is LAT if the next column is QUE. Raises MalformedError if several cuts are possible.
    """
    digits = text.index(".")
    cuts = [
        (text[:at], text[at:])
        for at in range(7, min(10, digits - 4) + 1)
        if text[0] != "0" and text[at] != "0" and int(text[:at]) % SECTOR_BYTES == 0
    ]
    if len(cuts) == 1:
        length, number = cuts[0]
        return (length, number, after) if after else (length, "", number)
    reason = f"could be {' or '.join(map(' and '.join, cuts))}" if cuts else "are not whole sectors and a time"
    raise MalformedError(f"BYTES and the next column run together: '{text}' {reason}; put a space between them")


def _text(block: Block) -> str:
    try:
        return block.data.decode()
    except UnicodeDecodeError:
        raise MalformedError("is not valid UTF-8") from None


def _of_ms(texts: list[str] | tuple[str, ...], name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return decimal_ns(pa.array(texts, pa.string()), name) // _MS_PER_S


def _header(line: bytes) -> str | None:
    return "header lines" if _HEADER.fullmatch(line) else None


def _read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    batches = request_batches(LINES)(source, tally)
    return _from_clock(batches, tally) if _CLOCK.search(source.head) else batches


def _from_clock(batches: Iterator[pa.RecordBatch], tally: Tally) -> Iterator[pa.RecordBatch]:
    """Count the days: a line that is more than half a day before the last one was printed after midnight."""
    tally.time_resolution_ns = _CLOCK_NS
    last = days = 0
    for batch in batches:
        printed = batch["time"].to_numpy() + batch["response_ns"].to_numpy()
        passed = days + np.cumsum(np.diff(printed, prepend=last) < -_DAY_NS // 2)
        if len(printed):
            last, days = int(printed[-1]), int(passed[-1])
        place = batch.schema.get_field_index("time")
        yield batch.set_column(place, "time", pc.add(batch["time"], pa.array(passed * _DAY_NS)))


LINES = Lines(_convert, _header)
FORMAT = Format(
    name="biosnoop",
    title="biosnoop of bcc or libbpf, text output",
    columns="TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)",
    units="s, sectors of 512 bytes, bytes, ms",
    looks_like=LINES.looks_like,
    read=_read,
    time_resolution_ns=10_000,
)
