"""fio iologs, versions 2 (read) and 3 (read and written); fio(1), "Trace file format", and iolog.c.

sync and datasync are flushes, trim is a discard, a volume is a file. There is no response time.

Version 2 (fio before 3.31) has no times but `wait` lines. `wait N` holds the job until N ms after its start. The code
does so (read_iolog_get: mtime_since_genesis), and fio 3.33 did in a trial: after waits of 1000, 2000 and 1500 it issued
at 1.0, 2.0 and 2.0 s. The manual, however, says us since the previous wait. A request's time is therefore the largest
wait before it. Requests between two waits share a time, and only their order is known. Waits apply to all volumes.

Version 3 (fio 3.31 and later) has times in us, when fio issued the request. fio ignores its `wait` lines, and so does
the import.

Written for replay with `fio --read_iolog=FILE --replay_redirect=DEVICE`: one volume, times truncated to us. fio treats
a time of 0 as none, so every time has 1 us added. Write-zeroes become writes; a write with a preflush becomes a sync
and a write. An iolog cannot express sync, FUA, meta, readahead, process or duration. Requests that fio does not accept
are dropped: reads and writes of length 0, and lengths of 4 GiB or more (fio parses 32 bits). All losses are counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.formats.common.column_reader import Columns, requests_of
from drivelab.trace.formats.common.source import Source
from drivelab.trace.formats.common.trace_format import NO_REQUEST, ExportReport, Tally
from drivelab.trace.parquet_schema import FLAGS, TraceFile

TICK_NS = 1000
FIRST_US = 1
_FILES = {2: re.compile(rb"\S+ (add|open|close|unlink)"), 3: re.compile(rb"\d+ \S+ (add|open|close|unlink)")}
TOO_LONG_BYTES = 1 << 32
_WORDS = {"flush": "sync", "discard": "trim", "write-zeroes": "write"}
_COLUMNS = ("queue_ns", "operation", "offset_bytes", "length_bytes", *FLAGS)


def _columns(version: int, tick_ns: int, **more: Any) -> Columns:
    words = {"read": "read", "write": "write", "sync": "flush", "datasync": "flush", "trim": "discard", "wait": None}
    return Columns(
        name=f"fio-iolog-v{version}",
        title=f"fio iolog, version {version}",
        operation="action",
        words=words,
        offset="offset",
        length="length",
        volume=("filename",),
        no_request="wait lines",
        comment=partial(_comment, version),
        tick_ns=tick_ns,
        time_resolution_ns=tick_ns,
        **more,
    )


def _header(version: int) -> bytes:
    return f"fio version {version} iolog".encode()


def _comment(version: int, line: bytes) -> str | None:
    """Return the kind of the first line and of lines about files."""
    if line == _header(version):
        return "header lines"
    return "add, open and close lines" if _FILES[version].fullmatch(line) else None


def _looks_like(version: int) -> Callable[[bytes], bool]:
    return lambda head: head.split(b"\n", 1)[0].strip() == _header(version)


def _read_version_2(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    now = 0
    for batch in VERSION_2.lines.batches(source, tally):
        if not batch.num_rows:
            continue
        waits = np.where(batch["operation"].to_numpy() == NO_REQUEST, batch["offset_bytes"].to_numpy(), 0)
        times = np.maximum(np.maximum.accumulate(waits), now)
        now = int(times[-1])
        timed = batch.set_column(batch.schema.get_field_index("time"), "time", pa.array(times))
        yield requests_of(timed, tally, VERSION_2.no_request)


def _write(trace: TraceFile, sink: BinaryIO, volume: str) -> ExportReport:
    if any(character.isspace() for character in volume) or not 0 < len(volume.encode()) <= 256:
        raise UserError(f"'{volume}' is not a file name for an iolog; use 1 to 256 bytes without spaces")
    dropped, altered = Counter[str](), Counter[str]()
    sink.write(_header(3) + f"\n{FIRST_US} {volume} add\n{FIRST_US} {volume} open\n".encode())
    last_us = FIRST_US
    for batch in trace.batches(_COLUMNS):
        kept = _acceptable(batch, dropped, altered)
        lines: list[str] = []
        columns = (kept[name].to_pylist() for name in (*_COLUMNS[:4], "preflush"))
        for queue_ns, operation, offset, length, preflush in zip(*columns, strict=True):
            last_us = queue_ns // TICK_NS + FIRST_US
            if preflush:
                lines.append(f"{last_us} {volume} sync 0 0\n")
            lines.append(f"{last_us} {volume} {_WORDS.get(operation, operation)} {offset} {length}\n")
        sink.write("".join(lines).encode())
    sink.write(f"{last_us} {volume} close\n".encode())
    return ExportReport(VERSION_3.name, trace.rows, dict(+dropped), dict(+altered))


def _acceptable(batch: pa.RecordBatch, dropped: Counter[str], altered: Counter[str]) -> pa.RecordBatch:
    """Return the requests that fio accepts; count the others, and what an iolog cannot express."""
    operation = batch["operation"].cast(pa.string())
    too_long = pc.greater_equal(batch["length_bytes"], TOO_LONG_BYTES)
    empty = pc.and_(pc.equal(batch["length_bytes"], 0), pc.not_equal(operation, "flush"))
    kept = pc.invert(pc.or_(too_long, empty))
    changes = {f"{flag} flags left out": batch[flag] for flag in FLAGS if flag != "preflush"}
    changes["preflush flags made sync lines"] = batch["preflush"]
    changes["write-zeroes made writes"] = pc.equal(operation, "write-zeroes")
    for kind, mask in (("requests from 4 GiB", too_long), ("requests of no bytes", empty)):
        dropped[kind] += pc.sum(mask).as_py() or 0
    for kind, mask in changes.items():
        altered[kind] += pc.sum(pc.and_(mask, kept)).as_py() or 0
    return batch.filter(kept)


VERSION_2 = _columns(
    2,
    units="bytes; wait lines in ms since the start",
    columns="filename action offset length",
    time=None,
    tick_ns=1_000_000,
)
VERSION_3 = _columns(
    3,
    units="us, bytes",
    columns="timestamp filename action offset length",
    time="timestamp",
    tick_ns=TICK_NS,
)
FORMATS = (
    replace(VERSION_2.format, looks_like=_looks_like(2), read=_read_version_2),
    replace(VERSION_3.format, looks_like=_looks_like(3), write=_write),
)
