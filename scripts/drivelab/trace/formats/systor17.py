"""SYSTOR '17 (SNIA IOTTA): enterprise virtual desktops.

A file holds one hour of a LUN.

Timestamp is when the request was issued, in seconds of Unix time with nine decimals, of which six are valid (README of
the traces). Response is the response time in seconds; completion is the sum. Offset and Size are in bytes. A blank
IOType marks a request that never completed and whose direction is unknown; such lines are counted and skipped. A volume
is a LUN.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from drivelab.trace.formats.common.request_columns import Fields, Kind, Layout, columns_format


def _more(fields: Fields) -> dict[str, Any]:
    missing = fields["Response"] < 0
    response_ns = pa.array(fields["Response"], mask=missing) if missing.any() else fields["Response"]
    return {"response_ns": response_ns, "volume": fields["LUN"]}


FORMAT = columns_format(
    Layout(
        {
            "Timestamp": Kind.SECONDS,
            "Response": Kind.SECONDS_OR_BLANK,
            "IOType": Kind.NAME,
            "LUN": Kind.NAME,
            "Offset": Kind.WHOLE,
            "Size": Kind.WHOLE,
        }
    ),
    name="systor17",
    title="SYSTOR '17 virtual desktop traces",
    units="s since 1970, s, bytes, R/W, header line",
    time="Timestamp",
    operation=("IOType", {"R": "read", "W": "write", "": None}),
    offset="Offset",
    length="Size",
    more=_more,
    not_requests="lines without an IOType",
    time_resolution_ns=1000,
    epoch=datetime(1970, 1, 1, tzinfo=UTC),
)
