"""Write pages of ftrace's ring buffer in the layout of kernel/trace/ring_buffer.c."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

PAGE_BYTES, HEAD_BYTES = 4096, 16
DELTA_LIMIT = 1 << 27
HEADER_PAGE = """\
\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;
\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;
\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;
\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;
"""
"""Content of events/header_page."""


@dataclass(frozen=True)
class Event:
    """An entry of the ring."""

    time_ns: int
    payload: bytes
    discarded: bool = False
    """Whether the entry was reserved and discarded; it remains as padding."""
    absolute: bool = False
    """Whether its time is written as an absolute time stamp."""


def record(version: int, device: int, *, sector: int, pdu: bytes = b"", action: int = 0x10001, pid: int = 7) -> bytes:
    """Return the payload of an entry of the `blk` tracer; magic, sequence and time have arbitrary values."""
    if version == 7:
        fields = struct.pack("<QIIIIIHH", sector, 4096, action, pid, device, 1, 0, len(pdu))
    else:
        fields = struct.pack("<QIIQIIHH12x", sector, 4096, pid, action, device, 1, 0, len(pdu))
    return b"entry of no mean" + fields + pdu


def pages(events: Iterable[Event], page_bytes: int = PAGE_BYTES) -> bytes:
    """Return events, in time order, as pages."""
    written: list[bytes] = []
    data, first_ns, before_ns = b"", 0, 0
    for event in events:
        if data and len(data) + len(_entry(event, before_ns)) > page_bytes - HEAD_BYTES:
            written.append(_page(first_ns, data, page_bytes))
            data = b""
        if not data:
            first_ns = before_ns = event.time_ns
        data += _entry(event, before_ns)
        # The reader ignores the time of discarded entries.
        before_ns = before_ns if event.discarded else event.time_ns
    return b"".join([*written, _page(first_ns, data, page_bytes)] if data else written)


def _page(time_ns: int, data: bytes, page_bytes: int) -> bytes:
    return struct.pack("<QQ", time_ns, len(data)) + data.ljust(page_bytes - HEAD_BYTES, b"\xee")


def _entry(event: Event, before_ns: int) -> bytes:
    body = event.payload.ljust(-(-len(event.payload) // 4) * 4, b"\0")
    delta = event.time_ns - before_ns
    if event.discarded:
        return struct.pack("<II", 1 << 5 | 29, len(body) + 4) + body
    prefix = b""
    if event.absolute:
        stamp = event.time_ns & ((1 << 59) - 1)
        prefix, delta = struct.pack("<II", (stamp % DELTA_LIMIT) << 5 | 31, stamp // DELTA_LIMIT), 0
    elif delta >= DELTA_LIMIT:
        prefix, delta = struct.pack("<II", (delta % DELTA_LIMIT) << 5 | 30, delta // DELTA_LIMIT), 0
    if len(body) <= 28 * 4:
        return prefix + struct.pack("<I", delta << 5 | len(body) // 4) + body
    return prefix + struct.pack("<II", delta << 5, len(body) + 4) + body
