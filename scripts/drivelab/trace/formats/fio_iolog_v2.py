"""fio iolog version 2 (fio before 3.31), with no times but `wait` lines.

`wait N` holds the job until N ms after its start. The code does so (iolog.c, read_iolog_get: mtime_since_genesis), and
fio 3.33 did in a trial: after waits of 1000, 2000 and 1500 it issued at 1.0, 2.0 and 2.0 s. The manual, however, says
us since the previous wait. A request's time is therefore the largest wait before it. Requests between two waits share a
time, and only their order is known. sync and datasync are flushes, trim is a discard. A volume is a file; waits apply
to all volumes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from drivelab.trace.formats.common import fio_iolog_lines
from drivelab.trace.formats.common.lines import Lines
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block, Source
from drivelab.trace.formats.common.trace_format import NO_REQUEST, Format, Tally, joined, operation_codes, rows

TICK_NS = 1_000_000
LAYOUT = Layout({"filename": Kind.NAME, "action": Kind.NAME, "offset": Kind.WHOLE, "length": Kind.WHOLE}, delimiter=" ")


def _convert(block: Block) -> pa.RecordBatch:
    """Convert requests and waits; `time` is that of a wait, and 0 for a request."""
    fields = LAYOUT.parse(block)
    operation = operation_codes(fields["action"], fio_iolog_lines.ACTIONS, "action")
    wait = operation == NO_REQUEST
    offset, length = fio_iolog_lines.extents(fields, operation)
    return rows(
        line=fields.line,
        time=np.where(wait, offset, 0),
        operation=operation,
        offset_bytes=np.where(wait, 0, offset),
        length_bytes=length,
        volume=fields["filename"],
    )


LINES = Lines(_convert, fio_iolog_lines.comments(2))


def _read(source: Source, tally: Tally) -> Iterator[pa.RecordBatch]:
    now = 0
    for pieces in LINES.read(source, tally):
        if not pieces or not sum(piece.num_rows for piece in pieces):
            continue
        batch = joined(pieces)
        times = np.maximum(np.maximum.accumulate(batch["time"].to_numpy()), now)
        now = int(times[-1])
        batch = batch.set_column(batch.schema.get_field_index("time"), "time", pa.array(times))
        request = batch["operation"].to_numpy() != NO_REQUEST
        if not request.all():
            tally.skipped["wait lines"] += int(np.count_nonzero(~request))
        yield batch.filter(pa.array(request))


FORMAT = Format(
    name="fio-iolog-v2",
    title="fio iolog, version 2",
    columns="filename action [offset length]",
    units="bytes; wait lines in ms since the start",
    looks_like=fio_iolog_lines.looks_like(2),
    read=_read,
    time_resolution_ns=TICK_NS,
    tick_ns=TICK_NS,
)
