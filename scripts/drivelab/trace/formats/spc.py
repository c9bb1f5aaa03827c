"""SPC trace file format 1.0.1, as in the UMass traces Financial and WebSearch.

Timestamp is the request's time in seconds since the start of the trace. LBA counts blocks of 512 bytes (the block of
the UMass traces). Size is in bytes and may be 0. Spaces around a field and further fields are allowed and ignored. A
volume is an application specific unit (ASU). There is no response time. SPC is the Storage Performance Council.
"""

from __future__ import annotations

from drivelab.trace.formats.common.request_columns import Kind, Layout, columns_format

FORMAT = columns_format(
    Layout(
        {"ASU": Kind.NAME, "LBA": Kind.WHOLE, "Size": Kind.WHOLE, "Opcode": Kind.NAME, "Timestamp": Kind.SECONDS},
        more=True,
    ),
    name="spc",
    title="SPC traces: UMass Financial and WebSearch",
    units="s, blocks of 512 bytes, bytes, r/w",
    time="Timestamp",
    operation=("Opcode", {"r": "read", "R": "read", "w": "write", "W": "write"}),
    offset="LBA",
    length="Size",
    sectors=("LBA",),
    more=lambda fields: {"volume": fields["ASU"]},
    time_resolution_ns=1000,
)
