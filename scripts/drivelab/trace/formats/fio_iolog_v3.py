"""fio iolog version 3 (fio 3.31 and later), read and written.

Times are in us, as in fio.

Read: the timestamp is when fio issued the request. sync and datasync are flushes, trim is a discard, a volume is a
file. fio ignores `wait` lines in this version, and so does the import. There is no response time.

Written for replay with `fio --read_iolog=FILE --replay_redirect=DEVICE`: one volume, times truncated to us. fio treats
a time of 0 as none, so every time has 1 us added. Write-zeroes become writes; a write with a preflush becomes a sync
and a write. An iolog cannot express sync, FUA, meta, readahead, process or duration. Requests that fio does not accept
are dropped: reads and writes of length 0, and lengths of 4 GiB or more (fio parses 32 bits). All losses are counted.
"""

from __future__ import annotations

from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from drivelab.core.errors import UserError
from drivelab.trace.formats.common import fio_iolog_lines
from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, Losses, operation_codes, rows
from drivelab.trace.parquet_schema import FLAGS, TraceFile

TICK_NS = 1000
FIRST_US = 1
TOO_LONG_BYTES = 1 << 32
LAYOUT = Layout(
    {
        "timestamp": Kind.WHOLE,
        "filename": Kind.NAME,
        "action": Kind.NAME,
        "offset": Kind.WHOLE,
        "length": Kind.WHOLE,
    },
    delimiter=" ",
)
_ACTIONS = {"read": "read", "write": "write", "flush": "sync", "discard": "trim", "write-zeroes": "write"}
_COLUMNS = ("queue_ns", "operation", "offset_bytes", "length_bytes", "preflush")


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    operation = operation_codes(fields["action"], fio_iolog_lines.ACTIONS, "action")
    offset, length = fio_iolog_lines.extents(fields, operation)
    return rows(
        line=fields.line,
        time=fields["timestamp"],
        operation=operation,
        offset_bytes=offset,
        length_bytes=length,
        volume=fields["filename"],
    )


def _write(trace: TraceFile, sink: BinaryIO, volume: str) -> Losses:
    if any(character.isspace() for character in volume) or not 0 < len(volume.encode()) <= 256:
        raise UserError(f"'{volume}' is not a file name for an iolog; use 1 to 256 bytes without spaces")
    losses = Losses()
    sink.write(f"fio version 3 iolog\n{FIRST_US} {volume} add\n{FIRST_US} {volume} open\n".encode())
    last_us = FIRST_US
    for batch in trace.batches([*_COLUMNS, *(flag for flag in FLAGS if flag != "preflush")]):
        lines: list[str] = []
        kept = _acceptable(batch, losses)
        columns = (kept[name].to_pylist() for name in _COLUMNS)
        for queue_ns, operation, offset, length, preflush in zip(*columns, strict=True):
            last_us = queue_ns // TICK_NS + FIRST_US
            if preflush:
                lines.append(f"{last_us} {volume} sync 0 0\n")
            lines.append(f"{last_us} {volume} {_ACTIONS[operation]} {offset} {length}\n")
        sink.write("".join(lines).encode())
        _count_altered(kept, losses)
    sink.write(f"{last_us} {volume} close\n".encode())
    return losses


def _acceptable(batch: pa.RecordBatch, losses: Losses) -> pa.RecordBatch:
    too_long = pc.greater_equal(batch["length_bytes"], TOO_LONG_BYTES)
    no_flush = pc.not_equal(batch["operation"].cast(pa.string()), "flush")
    empty = pc.and_(pc.equal(batch["length_bytes"], 0), no_flush)
    for kind, mask in (("requests from 4 GiB", too_long), ("requests of no bytes", empty)):
        if count := pc.sum(mask).as_py():
            losses.dropped[kind] += count
    return batch.filter(pc.invert(pc.or_(too_long, empty)))


def _count_altered(batch: pa.RecordBatch, losses: Losses) -> None:
    counts = {f"{flag} flags left out": batch[flag] for flag in FLAGS if flag != "preflush"}
    counts["preflush flags made sync lines"] = batch["preflush"]
    counts["write-zeroes made writes"] = pc.equal(batch["operation"].cast(pa.string()), "write-zeroes")
    for kind, flags in counts.items():
        if count := pc.sum(flags).as_py():
            losses.altered[kind] += count


LINES = Lines(_convert, fio_iolog_lines.comments(3))
FORMAT = Format(
    name="fio-iolog-v3",
    title="fio iolog, version 3",
    columns="timestamp filename action [offset length]",
    units="us, bytes",
    looks_like=fio_iolog_lines.looks_like(3),
    read=request_batches(LINES, not_requests="wait lines"),
    write=_write,
    time_resolution_ns=TICK_NS,
    tick_ns=TICK_NS,
)
