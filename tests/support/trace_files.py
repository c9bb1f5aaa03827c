"""Write blktrace files for tests."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drivelab.trace import records

HEADER = np.dtype(
    [
        ("magic", "<u4"), ("sequence", "<u4"), ("time_ns", "<u8"), ("sector", "<u8"), ("bytes", "<u4"),
        ("action", "<u4"), ("pid", "<u4"), ("device", "<u4"), ("cpu", "<u4"), ("error", "<u2"), ("pdu_bytes", "<u2"),
    ]
)  # fmt: skip
"""Record of version 7."""

Event = tuple[int, str, str, int, int]
"""Time in ns, blkparse's letter, its flags (`R`, `W`, `WS`, `FWFS`, `FN`, `DS` …), sector, bytes."""


def action_word(letter: str, flags: str) -> int:
    """Return the action of an event in the kernel's format; F before the direction is a flush, after it FUA."""
    direction = next(index for index, flag in enumerate(flags) if flag in "RWDN")
    words = {"R": records.READ, "N": records.READ, "W": records.WRITE, "D": records.DISCARD | records.WRITE}
    word = records.ACTIONS.index(letter) | words[flags[direction]]
    word |= records.FLUSH if "F" in flags[:direction] else 0
    for flag, bit in (("F", records.FUA), ("S", records.SYNC), ("M", records.META), ("A", records.READAHEAD)):
        word |= bit if flag in flags[direction + 1 :] else 0
    return word


def record_bytes(
    event: Event, cpu: int = 0, sequence: int = 0, pid: int = 7, pdu: bytes = b"", action: int | None = None,
    version: int = 7, device: int = 1 << 20, error: int = 0,
) -> bytes:  # fmt: skip
    """Return a record in the kernel's format, errors negative; `action` replaces the event's letter and flags."""
    time_ns, letter, flags, sector, length = event
    word = action_word(letter, flags) if action is None else action
    head = struct.pack("<IIQQI", records.MAGIC | version, sequence, time_ns, sector, length)
    if version == 7:
        return head + struct.pack("<IIIIhH", word & 0xFFFFFFFF, pid, device, cpu, -error, len(pdu)) + pdu
    return head + struct.pack("<IQIIhH12x", pid, word, device, cpu, -error, len(pdu)) + pdu


def write_capture(folder: Path, *cpus: Sequence[Event]) -> Path:
    """Write a capture to a folder, one list of events per CPU."""
    folder.mkdir()
    for cpu, events in enumerate(cpus):
        data = b"".join(record_bytes(event, cpu) for event in events)
        (folder / f"trace.blktrace.{cpu}").write_bytes(data)
    return folder


@dataclass(frozen=True)
class Record:
    """A record with all of the kernel's fields."""

    time_ns: int
    action: int
    sector: int
    length: int
    pid: int = 7
    cpu: int = 0
    error: int = 0
    payload: bytes = b""
    lost_before: int = 0
    """Number of sequence numbers skipped before this record."""


def file_bytes(events: Iterable[Record], version: int) -> bytes:
    """Return a file of events; as in the kernel, all records except notes are numbered on each CPU."""
    data, sequence = bytearray(), Counter[int]()
    for event in events:
        is_note = bool(event.action & records.NOTIFY)
        sequence[event.cpu] += 0 if is_note else 1 + event.lost_before
        number = 0 if is_note else sequence[event.cpu]
        data += record_bytes(
            (event.time_ns, "", "", event.sector, event.length), event.cpu, number, event.pid, event.payload,
            event.action, version, error=event.error,
        )  # fmt: skip
    return bytes(data)


def write_records(folder: Path, *files: Iterable[Record], version: int = 7) -> Path:
    """Write a capture of records, one file per CPU, each in the given order."""
    folder.mkdir(exist_ok=True)
    for cpu, events in enumerate(files):
        (folder / f"trace.blktrace.{cpu}").write_bytes(file_bytes(events, version))
    return folder


def by_cpu(events: Sequence[Record], cpus: int) -> list[list[Record]]:
    """Return the events of each CPU."""
    return [[event for event in events if event.cpu == cpu] for cpu in range(cpus)]
