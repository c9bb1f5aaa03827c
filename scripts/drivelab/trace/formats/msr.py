"""MSR Cambridge (SNIA IOTTA, FAST 2008): enterprise servers.

Timestamp is when the request was issued, in Windows FILETIME (100 ns since 1601, UTC). ResponseTime has the same unit;
completion is the sum. A volume is HOST_DISK, as in the names of the published files. The traces' README defines the
columns.
"""

from __future__ import annotations

from datetime import UTC, datetime

from drivelab.trace.formats.common.request_columns import Kind, Layout, columns_format
from drivelab.trace.formats.common.trace_format import scaled, volume_pairs

TICK_NS = 100
FORMAT = columns_format(
    Layout(
        {
            "Timestamp": Kind.WHOLE,
            "Hostname": Kind.NAME,
            "DiskNumber": Kind.NAME,
            "Type": Kind.NAME,
            "Offset": Kind.WHOLE,
            "Size": Kind.WHOLE,
            "ResponseTime": Kind.WHOLE,
        }
    ),
    name="msr",
    title="MSR Cambridge block traces",
    units="100 ns since 1601, bytes, Read/Write",
    time="Timestamp",
    operation=("Type", {"Read": "read", "Write": "write"}),
    offset="Offset",
    length="Size",
    more=lambda fields: {
        "response_ns": scaled(fields["ResponseTime"], TICK_NS, "ResponseTime"),
        "volume": volume_pairs(fields["Hostname"], "_", fields["DiskNumber"]),
    },
    time_resolution_ns=TICK_NS,
    tick_ns=TICK_NS,
    epoch=datetime(1601, 1, 1, tzinfo=UTC),
)
