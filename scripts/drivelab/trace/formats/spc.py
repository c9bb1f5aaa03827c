"""SPC trace file format 1.0.1, as in the UMass traces Financial and WebSearch.

Timestamp is the request's time in seconds since the start of the trace. LBA counts blocks of 512 bytes (the block of
the UMass traces). Size is in bytes and may be 0. Spaces around a field and further fields are allowed and ignored. A
volume is an application specific unit (ASU). There is no response time. SPC is the Storage Performance Council.
"""

from __future__ import annotations

import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, operation_codes, rows, scaled
from drivelab.trace.records import SECTOR_BYTES

LAYOUT = Layout(
    {"ASU": Kind.NAME, "LBA": Kind.WHOLE, "Size": Kind.WHOLE, "Opcode": Kind.NAME, "Timestamp": Kind.SECONDS}, more=True
)


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    opcodes = {"r": "read", "R": "read", "w": "write", "W": "write"}
    return rows(
        line=fields.line,
        time=fields["Timestamp"],
        operation=operation_codes(fields["Opcode"], opcodes, "Opcode"),
        offset_bytes=scaled(fields["LBA"], SECTOR_BYTES, "LBA"),
        length_bytes=fields["Size"],
        volume=fields["ASU"],
    )


LINES = Lines(_convert, LAYOUT.header)
FORMAT = Format(
    name="spc",
    title="SPC traces: UMass Financial and WebSearch",
    columns="ASU,LBA,Size,Opcode,Timestamp",
    units="s, blocks of 512 bytes, bytes, r/w",
    looks_like=LINES.looks_like,
    read=request_batches(LINES),
    time_resolution_ns=1000,
)
