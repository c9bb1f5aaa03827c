"""Text output of biosnoop (bcc or libbpf), with or without -Q.

TIME(s) is the completion time in seconds since the first completion (biosnoop(8)). LAT(ms) is the time from dispatch to
completion; QUE(ms), with -Q, is the time from queue to dispatch. Dispatch and queue times are therefore differences
with a resolution of 0.01 ms. Without -Q, or where QUE is -1, the queue time is unknown and the dispatch time replaces
it. Rows are in completion order and are sorted.

T is R or W with bcc (BPF Compiler Collection), which prints R for everything but writes; the libbpf version prints the
kernel's flags. A request of length 0 is a flush. A volume is a DISK. Offsets are sectors of 512 bytes from the start of
the whole disk.
"""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import FlagColumns, decimal_ns
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import LARGEST, Format, MalformedError, rows
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.trace.records import SECTOR_BYTES

_LINE = re.compile(
    r"(\d+\.\d{1,9})\s+(\S.{0,15}?)\s+(\d{1,9})\s+(\S+)\s+([A-Z]+)\s+(\d{1,20})\s+(\d{1,10})"
    r"(?:\s+(-?\d{1,12}(?:\.\d{1,6})?))?\s+(\d{1,12}(?:\.\d{1,6})?)"
)
_HEADER = re.compile(rb"TIME(?:\(s\)|STAMP)?\s+COMM\s+PID\s+DISK\s+T\s+SECTOR\s+BYTES\s+(?:QUE\(ms\)\s+)?LAT\(ms\)")
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
            raise MalformedError("is not of the form TIME COMM PID DISK T SECTOR BYTES [QUE] LAT")
        numbers.append(number)
        fields.append(match.groups(""))
    time, process, pid, disk, kind, sector, length, queued, latency = zip(*fields, strict=True) if fields else ((),) * 9
    flags = FlagColumns(kind)
    length_bytes = np.array([int(text) for text in length], np.int64)
    sectors = [0 if empty else int(text) for text, empty in zip(sector, length_bytes == 0, strict=True)]
    if sectors and max(sectors) > LARGEST // SECTOR_BYTES:
        raise MalformedError("SECTOR is beyond 2^63 bytes")
    complete_ns = decimal_ns(pa.array(time, pa.string()), "TIME(s)")
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


def _text(block: Block) -> str:
    try:
        return block.data.decode()
    except UnicodeDecodeError:
        raise MalformedError("is not valid UTF-8") from None


def _of_ms(texts: list[str] | tuple[str, ...], name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return decimal_ns(pa.array(texts, pa.string()), name) // _MS_PER_S


def _header(line: bytes) -> str | None:
    return "header lines" if _HEADER.fullmatch(line) else None


LINES = Lines(_convert, _header)
FORMAT = Format(
    name="biosnoop",
    title="biosnoop of bcc, text output",
    columns="TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)",
    units="s, sectors of 512 bytes, bytes, ms",
    looks_like=LINES.looks_like,
    read=request_batches(LINES),
    time_resolution_ns=10_000,
)
