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

from drivelab.trace.formats.common.column_reader import decimal_ns
from drivelab.trace.formats.common.lines import Lines, line_numbers, text_lines
from drivelab.trace.formats.common.source import Block, Source
from drivelab.trace.formats.common.trace_format import (
    Format,
    MalformedError,
    Tally,
    Whole,
    parse_flags,
    rows,
    scaled,
)
from drivelab.trace.parquet_schema import FLAGS, OPERATIONS
from drivelab.trace.records import SECTOR_BYTES

_LINE = (
    r"^(?P<time>\d+\.\d{1,9}|\d\d:\d\d:\d\d\.\d{3})\s+(?P<comm>\S.{0,15}?)\s+(?P<pid>\d{1,9})\s+(?P<disk>\S+)\s+"
    r"(?P<kind>[A-Z]+)\s+(?P<sector>\d{1,20})\s+(?:(?P<bytes>\d{1,10})(?:\s+|\s*[SR?]\s+)"
    r"(?:(?P<queue>-?\d{1,12}(?:\.\d{1,6})?)\s+)?(?P<latency>\d{1,12}(?:\.\d{1,6})?)"
    r"|(?P<joined>\d{11,22}\.\d\d)(?:\s+(?P<after>\d{1,12}\.\d\d))?)$"
)
_HEADER = re.compile(
    rb"TIME(?:\(s\)|STAMP)?\s+COMM\s+PID\s+DISK\s+T\s+SECTOR\s+BYTES\s+(?:P\s+)?(?:QUE\(ms\)\s+)?LAT\(ms\)"
)
_CLOCK = re.compile(rb"(?m)^\s*\d\d:\d\d:\d\d\.\d{3}\s")
_CLOCK_NS = 1_000_000
_DAY_NS = 86_400 * 1_000_000_000


def _convert(block: Block) -> pa.RecordBatch:
    lines = text_lines(block)
    fields = pc.extract_regex(pa.array(lines, pa.string()), _LINE)
    if fields.null_count:
        raise MalformedError("is not of the form TIME COMM PID DISK T SECTOR BYTES [P] [QUE] LAT")
    field = dict(zip(fields.type.names, fields.flatten(), strict=True))
    length, queue, latency = _lengths_and_times(field)
    length_bytes: Whole = pc.cast(length, pa.int64()).to_numpy()
    letters = field["kind"].dictionary_encode()
    parsed = [parse_flags(text) for text in letters.dictionary.to_pylist()]
    if any(not operation for operation, _ in parsed):
        raise MalformedError("a request without data has no direction")
    kinds = letters.indices.to_numpy()
    codes = np.array([OPERATIONS.index(operation) for operation, _ in parsed], np.int8)[kinds]
    try:
        sector = pc.cast(pc.if_else(pa.array(length_bytes == 0), "0", field["sector"]), pa.int64())
    except pa.ArrowInvalid:
        raise MalformedError("SECTOR is beyond 2^63 bytes") from None
    complete_ns = decimal_ns(_seconds(field["time"]), "TIME(s)")
    return rows(
        line=line_numbers(block, len(lines)),
        time=complete_ns - latency - queue,
        operation=np.where(length_bytes == 0, np.int8(OPERATIONS.index("flush")), codes),
        offset_bytes=scaled(sector.to_numpy(), SECTOR_BYTES, "SECTOR"),
        length_bytes=length_bytes,
        response_ns=latency + queue,
        dispatch_delay_ns=queue,
        volume=field["disk"].dictionary_encode(),
        process=pc.if_else(pc.equal(field["comm"], "?"), "", field["comm"]).dictionary_encode(),
        pid=pc.cast(field["pid"], pa.int32()),
        **{flag: np.array([flag in flags for _, flags in parsed], bool)[kinds] for flag in FLAGS},
    )


def _lengths_and_times(field: dict[str, pa.Array]) -> tuple[pa.Array, Whole, Whole]:
    """Return BYTES, and QUE and LAT in ns; a missing or negative QUE is 0."""
    length, queue, latency = field["bytes"], field["queue"], field["latency"]
    if pc.any(pc.not_equal(field["joined"], "")).as_py():
        columns = (field[name].to_pylist() for name in ("bytes", "queue", "latency", "joined", "after"))
        values = [_cut(joint, after) if joint else known for *known, joint, after in zip(*columns, strict=True)]
        length, queue, latency = (pa.array(column, pa.string()) for column in zip(*values, strict=True))
    unknown = pc.or_(pc.equal(queue, ""), pc.starts_with(queue, "-"))
    # Milliseconds are read as seconds, in ns: 0.74 ms is 0.74 s / 1000.
    queue_ns = decimal_ns(pc.if_else(unknown, "0", queue), "QUE(ms)") // 1000
    return length, queue_ns, decimal_ns(latency, "LAT(ms)") // 1000


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


def _seconds(times: pa.StringArray) -> pa.StringArray:
    """Return times in seconds; a time of day counts from midnight."""
    if not pc.any(pc.match_substring(times, ":")).as_py():
        return times
    return pa.array([_since_midnight(time) if ":" in time else time for time in times.to_pylist()], pa.string())


def _since_midnight(time: str) -> str:
    hours, minutes, seconds = time.split(":")
    return f"{int(hours) * 3600 + int(minutes) * 60 + int(seconds[:2])}{seconds[2:]}"


def _read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    batches = LINES.batches(source, tally)
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


LINES = Lines(_convert, lambda line: "header lines" if _HEADER.fullmatch(line) else None)
FORMATS = (
    Format(
        name="biosnoop",
        title="biosnoop of bcc or libbpf, text output",
        columns="TIME(s) COMM PID DISK T SECTOR BYTES [P] [QUE(ms)] LAT(ms)",
        units="s, sectors of 512 bytes, bytes, ms",
        looks_like=LINES.looks_like,
        read=_read,
        time_resolution_ns=10_000,
    ),
)
