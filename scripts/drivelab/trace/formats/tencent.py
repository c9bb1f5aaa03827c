"""Tencent cloud block storage 2018 (SNIA IOTTA, ATC 2020).

Timestamp is when the request was issued, in whole seconds of Unix time. Within a second only the order is known; the
trace places all requests of a second at its start. Offset and Size are in sectors of 512 bytes. IOType is 0 for a read
and 1 for a write. There is no response time. The published archives are tar files: unpack them first.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, operation_codes, rows, scaled
from drivelab.trace.records import SECTOR_BYTES

TICK_NS = 1_000_000_000
LAYOUT = Layout(
    {
        "Timestamp": Kind.WHOLE,
        "Offset": Kind.WHOLE,
        "Size": Kind.WHOLE,
        "IOType": Kind.NAME,
        "VolumeID": Kind.NAME,
    }
)


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    return rows(
        line=fields.line,
        time=fields["Timestamp"],
        operation=operation_codes(fields["IOType"], {"0": "read", "1": "write"}, "IOType"),
        offset_bytes=scaled(fields["Offset"], SECTOR_BYTES, "Offset"),
        length_bytes=scaled(fields["Size"], SECTOR_BYTES, "Size"),
        volume=fields["VolumeID"],
    )


LINES = Lines(_convert, LAYOUT.header)
FORMAT = Format(
    name="tencent",
    title="Tencent cloud block storage traces 2018",
    columns="Timestamp,Offset,Size,IOType,VolumeID",
    units="s since 1970, sectors of 512 bytes, 0 read / 1 write",
    looks_like=LINES.looks_like,
    read=request_batches(LINES),
    time_resolution_ns=TICK_NS,
    tick_ns=TICK_NS,
    epoch=datetime(1970, 1, 1, tzinfo=UTC),
)
