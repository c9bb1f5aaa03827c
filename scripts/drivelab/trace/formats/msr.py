"""MSR Cambridge (SNIA IOTTA, FAST 2008): enterprise servers.

Timestamp is when the request was issued, in Windows FILETIME (100 ns since 1601, UTC). ResponseTime has the same unit;
completion is the sum. A volume is HOST_DISK, as in the names of the published files. The traces' README defines the
columns.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, operation_codes, rows, scaled, volume_pairs

TICK_NS = 100
LAYOUT = Layout(
    {
        "Timestamp": Kind.WHOLE,
        "Hostname": Kind.NAME,
        "DiskNumber": Kind.NAME,
        "Type": Kind.NAME,
        "Offset": Kind.WHOLE,
        "Size": Kind.WHOLE,
        "ResponseTime": Kind.WHOLE,
    }
)


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    return rows(
        line=fields.line,
        time=fields["Timestamp"],
        operation=operation_codes(fields["Type"], {"Read": "read", "Write": "write"}, "Type"),
        offset_bytes=fields["Offset"],
        length_bytes=fields["Size"],
        response_ns=scaled(fields["ResponseTime"], TICK_NS, "ResponseTime"),
        volume=volume_pairs(fields["Hostname"], "_", fields["DiskNumber"]),
    )


LINES = Lines(_convert, LAYOUT.header)
FORMAT = Format(
    name="msr",
    title="MSR Cambridge block traces",
    columns="Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    units="100 ns since 1601, bytes, Read/Write",
    looks_like=LINES.looks_like,
    read=request_batches(LINES),
    time_resolution_ns=TICK_NS,
    tick_ns=TICK_NS,
    epoch=datetime(1601, 1, 1, tzinfo=UTC),
)
