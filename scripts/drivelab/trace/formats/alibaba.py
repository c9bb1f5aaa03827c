"""Alibaba block traces 2020: 1000 virtual disks of a cloud.

Source: github.com/alibaba/block-traces, `io_traces.csv`. The timestamp is the server's receipt of the request, in us of
Unix time. Offset and length are in bytes. A volume is a device_id. There is no response time.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, operation_codes, rows

TICK_NS = 1000
LAYOUT = Layout(
    {
        "device_id": Kind.NAME,
        "opcode": Kind.NAME,
        "offset": Kind.WHOLE,
        "length": Kind.WHOLE,
        "timestamp": Kind.WHOLE,
    }
)


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    return rows(
        line=fields.line,
        time=fields["timestamp"],
        operation=operation_codes(fields["opcode"], {"R": "read", "W": "write"}, "opcode"),
        offset_bytes=fields["offset"],
        length_bytes=fields["length"],
        volume=fields["device_id"],
    )


LINES = Lines(_convert, LAYOUT.header)
FORMAT = Format(
    name="alibaba",
    title="Alibaba block traces 2020",
    columns="device_id,opcode,offset,length,timestamp",
    units="us since 1970, bytes, R/W",
    looks_like=LINES.looks_like,
    read=request_batches(LINES),
    time_resolution_ns=TICK_NS,
    tick_ns=TICK_NS,
    epoch=datetime(1970, 1, 1, tzinfo=UTC),
)
