"""SYSTOR '17 (SNIA IOTTA): enterprise virtual desktops.

A file holds one hour of a LUN.

Timestamp is when the request was issued, in seconds of Unix time with nine decimals, of which six are valid (README of
the traces). Response is the response time in seconds; completion is the sum. Offset and Size are in bytes. A blank
IOType marks a request that never completed and whose direction is unknown; such lines are counted and skipped. A volume
is a LUN.
"""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from drivelab.trace.formats.common.lines import Lines, request_batches
from drivelab.trace.formats.common.request_columns import Kind, Layout
from drivelab.trace.formats.common.source import Block
from drivelab.trace.formats.common.trace_format import Format, operation_codes, rows

LAYOUT = Layout(
    {
        "Timestamp": Kind.SECONDS,
        "Response": Kind.SECONDS_OR_BLANK,
        "IOType": Kind.NAME,
        "LUN": Kind.NAME,
        "Offset": Kind.WHOLE,
        "Size": Kind.WHOLE,
    }
)


def _convert(block: Block) -> pa.RecordBatch:
    fields = LAYOUT.parse(block)
    response_ns: np.ndarray[tuple[int], np.dtype[np.int64]] = fields["Response"]
    missing = response_ns < 0
    return rows(
        line=fields.line,
        time=fields["Timestamp"],
        operation=operation_codes(fields["IOType"], {"R": "read", "W": "write", "": None}, "IOType"),
        offset_bytes=fields["Offset"],
        length_bytes=fields["Size"],
        response_ns=pa.array(response_ns, mask=missing) if missing.any() else response_ns,
        volume=fields["LUN"],
    )


LINES = Lines(_convert, LAYOUT.header)
FORMAT = Format(
    name="systor17",
    title="SYSTOR '17 virtual desktop traces",
    columns="Timestamp,Response,IOType,LUN,Offset,Size",
    units="s since 1970, s, bytes, R/W, header line",
    looks_like=LINES.looks_like,
    read=request_batches(LINES, not_requests="lines without an IOType"),
    time_resolution_ns=1000,
    epoch=datetime(1970, 1, 1, tzinfo=UTC),
)
