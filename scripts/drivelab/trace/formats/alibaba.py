"""Alibaba block traces 2020: 1000 virtual disks of a cloud.

Source: github.com/alibaba/block-traces, `io_traces.csv`. The timestamp is the server's receipt of the request, in us of
Unix time. Offset and length are in bytes. A volume is a device_id. There is no response time.
"""

from __future__ import annotations

from datetime import UTC, datetime

from drivelab.trace.formats.common.request_columns import Kind, Layout, columns_format

FORMAT = columns_format(
    Layout(
        {
            "device_id": Kind.NAME,
            "opcode": Kind.NAME,
            "offset": Kind.WHOLE,
            "length": Kind.WHOLE,
            "timestamp": Kind.WHOLE,
        }
    ),
    name="alibaba",
    title="Alibaba block traces 2020",
    units="us since 1970, bytes, R/W",
    time="timestamp",
    operation=("opcode", {"R": "read", "W": "write"}),
    offset="offset",
    length="length",
    more=lambda fields: {"volume": fields["device_id"]},
    time_resolution_ns=1000,
    tick_ns=1000,
    epoch=datetime(1970, 1, 1, tzinfo=UTC),
)
