"""Tencent cloud block storage 2018 (SNIA IOTTA, ATC 2020).

Timestamp is when the request was issued, in whole seconds of Unix time. Within a second only the order is known; the
trace places all requests of a second at its start. Offset and Size are in sectors of 512 bytes. IOType is 0 for a read
and 1 for a write. There is no response time. The published archives are tar files: unpack them first.
"""

from __future__ import annotations

from datetime import UTC, datetime

from drivelab.trace.formats.common.request_columns import Kind, Layout, columns_format

FORMAT = columns_format(
    Layout(
        {"Timestamp": Kind.WHOLE, "Offset": Kind.WHOLE, "Size": Kind.WHOLE, "IOType": Kind.NAME, "VolumeID": Kind.NAME}
    ),
    name="tencent",
    title="Tencent cloud block storage traces 2018",
    units="s since 1970, sectors of 512 bytes, 0 read / 1 write",
    time="Timestamp",
    operation=("IOType", {"0": "read", "1": "write"}),
    offset="Offset",
    length="Size",
    sectors=("Offset", "Size"),
    more=lambda fields: {"volume": fields["VolumeID"]},
    time_resolution_ns=1_000_000_000,
    tick_ns=1_000_000_000,
    epoch=datetime(1970, 1, 1, tzinfo=UTC),
)
