"""Read records of block traces for the slow decoder, one by one, with decoded actions."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HEADERS = {7: struct.Struct("<IIQQIIIIIhH"), 8: struct.Struct("<IIQQIIQIIhH12x")}
"""Record headers by version; the error is negative, as stored by the kernel."""
MAGIC = 0x65617400
LETTERS = "?QMFGSRDCPUUIXBA"
CATEGORIES = (
    "read", "write", "flush", "sync", "queue", "requeue", "issue", "complete", "fs", "passthrough", "notify",
    "readahead", "meta", "discard", "driver", "fua", "zone-append", "zone-reset", "zone-reset-all", "zone-finish",
    "zone-open", "zone-close", "write-zeroes",
)  # fmt: skip
CGROUP = 1 << 8


@dataclass
class Event:
    """One record with its decoded action."""

    time_ns: int
    number: int
    is_: set[str]
    """Names from CATEGORIES."""
    begin: int
    length: int
    pid: int
    device: int
    cpu: int
    error: int
    payload: bytes

    @property
    def end(self) -> int:
        return self.begin + self.length

    @property
    def letter(self) -> str:
        if "notify" in self.is_:
            return "notify"
        return LETTERS[self.number] if 0 < self.number < len(LETTERS) else f"action {self.number}"

    @property
    def direction(self) -> str:
        for name in ("discard", "write-zeroes"):
            if name in self.is_:
                return name
        return "write" if self.is_ & {"write", "zone-append"} else "read"

    @property
    def is_device_flush(self) -> bool:
        """Whether the event belongs to the kernel's own flush request (blk_kick_flush): REQ_OP_FLUSH, no data."""
        return self.length == 0 and "flush" in self.is_ and "write" not in self.is_


def cpu_files(folder: Path) -> dict[int, Path]:
    return {
        int(match[1]): path for path in folder.iterdir() if (match := re.fullmatch(r".+\.blktrace\.(\d+)", path.name))
    }


def raw_records(data: bytes) -> Iterator[tuple[int, int, Event]]:
    """Yield end, sequence number and event of every whole record; raises ValueError for other data."""
    at = 0
    while at + 4 <= len(data):
        (magic,) = struct.unpack_from("<I", data, at)
        header = HEADERS.get(magic ^ MAGIC)
        if header is None:
            raise ValueError(f"no record at byte {at}")
        if at + header.size > len(data):
            return
        fields = header.unpack_from(data, at)
        _, sequence, time_ns, sector, length, a, b, device, cpu, error, pdu_bytes = fields
        action, pid = (a, b) if header is HEADERS[7] else (b, a)
        end = at + header.size + pdu_bytes
        if end > len(data):
            return
        payload = data[at + header.size : end]
        categories = {name for bit, name in enumerate(CATEGORIES) if action >> (16 + bit) & 1}
        payload = payload[8:] if action & CGROUP else payload
        yield (
            end,
            sequence,
            Event(time_ns, action & 0xFF, categories, 512 * sector, length, pid, device, cpu, abs(error), payload),
        )
        at = end
