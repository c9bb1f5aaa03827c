"""FIU traces of desktops and servers, with digests of the content.

Source: Florida International University, SNIA IOTTA. The time is in ns since an unknown moment and is used as the time
of the request. Address and size are in sectors of 512 bytes; a volume is MAJOR,MINOR (README of the traces). The
digests at the end of the line, one or more, are ignored. There is no response time. One space separates fields, so a
space in a process name makes the line malformed.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import (
    Format,
    MalformedError,
    operation_codes,
    rows,
    scaled,
    volume_pairs,
)
from drivelab.trace.records import SECTOR_BYTES

LAYOUT = Layout(
    {
        "ts": Kind.WHOLE,
        "pid": Kind.WHOLE,
        "process": Kind.NAME,
        "lba": Kind.WHOLE,
        "size": Kind.WHOLE,
        "operation": Kind.NAME,
        "major": Kind.NAME,
        "minor": Kind.NAME,
    },
    delimiter=" ",
    more=True,
)


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    if len(fields.line) and int(fields["pid"].max()) >= 1 << 31:
        raise MalformedError("pid is beyond 2^31")
    return rows(
        line=fields.line,
        time=fields["ts"],
        operation=operation_codes(fields["operation"], {"R": "read", "W": "write"}, "operation"),
        offset_bytes=scaled(fields["lba"], SECTOR_BYTES, "lba"),
        length_bytes=scaled(fields["size"], SECTOR_BYTES, "size"),
        volume=volume_pairs(fields["major"], ",", fields["minor"]),
        process=fields["process"],
        pid=fields["pid"].astype(np.int32),
    )


LINES = Lines(_convert, LAYOUT.header)
FORMAT = Format(
    name="fiu",
    title="FIU traces: IODedup, SRCMap",
    columns="ts pid process lba size operation major minor [md5 …]",
    units="ns, sectors of 512 bytes, R/W",
    looks_like=LINES.looks_like,
    read=request_batches(LINES),
)
