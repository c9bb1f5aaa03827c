"""Records of blktrace files, version 7 (linux/blktrace_api.h, struct blk_io_trace)."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drivelab.errors import UserError

HEADER = np.dtype(
    [
        ("magic", "<u4"), ("sequence", "<u4"), ("time_ns", "<u8"), ("sector", "<u8"), ("bytes", "<u4"),
        ("action", "<u4"), ("pid", "<u4"), ("device", "<u4"), ("cpu", "<u4"), ("error", "<u2"), ("pdu_bytes", "<u2"),
    ]
)  # fmt: skip
MAGIC = 0x65617400
VERSION = 7
ACTIONS = "?QMFGSRDCPUUIXBA"
"""Letters of the actions 1 to 15 as blkparse(1) prints them; 10 is an unplug, 11 one by the timer (`UT` there)."""
READ, WRITE, FLUSH, SYNC, PASSTHROUGH, NOTIFY, READAHEAD, META, DISCARD, FUA = (
    1 << (16 + bit) for bit in (0, 1, 2, 3, 9, 10, 11, 12, 13, 15)
)
NOTIFY_PROCESS = 0
_MAGIC = struct.Struct("<I")
_ACTION_PID = struct.Struct("<II")
_PDU_BYTES = struct.Struct("<H")


@dataclass(frozen=True)
class CpuRecords:
    """Records of one CPU's file, in the file's order."""

    records: npt.NDArray[np.void]
    """Of dtype HEADER."""
    processes: dict[int, str]
    """Process names by PID, from the notes that blktrace writes; ftrace writes none."""
    sequence_gaps: int
    """Records lost according to the sequence numbers; ftrace leaves them 0, so it shows none."""
    truncated_bytes: int
    """Length of a last record that is not whole."""


def cpu_files(source: Path) -> list[Path]:
    """Files of a capture in the order of the CPUs; `source` is its directory, or a base name as for `blkparse -i`.

    Raises UserError when there is none, or when a directory holds several captures.
    """
    pattern = re.compile(r"(.+)\.blktrace\.(\d+)")
    folder, base = (source, None) if source.is_dir() else (source.parent, source.name)
    found: dict[str, list[tuple[int, Path]]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := pattern.fullmatch(path.name):
            found.setdefault(match[1], []).append((int(match[2]), path))
    if base is not None:
        found = {base: found[base]} if base in found else {}
    if not found:
        raise UserError(f"{source}: holds no capture (files NAME.blktrace.CPU); name its folder or base name")
    if len(found) > 1:
        raise UserError(f"{source}: holds several captures ({', '.join(sorted(found))}); name one of them")
    return [path for _, path in sorted(*found.values())]


def read_records(path: Path) -> CpuRecords:
    """Records of one file; raises UserError for other versions, another byte order, and what is no blktrace file."""
    data = path.read_bytes()
    offsets, processes, end = _offsets(data, path)
    raw = np.frombuffer(data, np.uint8)
    index = np.asarray(offsets, np.int64)[:, None] + np.arange(HEADER.itemsize)
    records = np.ascontiguousarray(raw[index]).view(HEADER).reshape(-1) if offsets else np.empty(0, HEADER)
    # Numbers start anywhere (they survive a stop and start), so only jumps between neighbours count. The kernel does
    # not number notes (trace_note in kernel/trace/blktrace.c).
    numbers = records["sequence"][(records["action"] & np.uint32(NOTIFY)) == 0]
    steps = np.diff(numbers.astype(np.int64))
    return CpuRecords(records, processes, int(np.clip(steps - 1, 0, None).sum()), len(data) - end)


def _offsets(data: bytes, path: Path) -> tuple[list[int], dict[int, str], int]:
    """Start of every whole record, process names, and the end of the last whole record."""
    offsets: list[int] = []
    processes: dict[int, str] = {}
    position, header = 0, HEADER.itemsize
    while position + header <= len(data):
        (magic,) = _MAGIC.unpack_from(data, position)
        if magic != MAGIC | VERSION:
            raise UserError(f"{path}: {_wrong_magic(magic)} at byte {position}; capture anew or convert it")
        action, pid = _ACTION_PID.unpack_from(data, position + 28)
        (pdu_bytes,) = _PDU_BYTES.unpack_from(data, position + 46)
        end = position + header + pdu_bytes
        if end > len(data):
            break
        offsets.append(position)
        if action & NOTIFY and action & 0xFFFF == NOTIFY_PROCESS:
            processes[pid] = data[position + header : end].split(b"\0")[0].decode(errors="replace")
        position = end
    return offsets, processes, position


def _wrong_magic(magic: int) -> str:
    if magic & 0xFFFFFF00 == MAGIC:
        return f"record of version {magic & 0xFF}, only version {VERSION} is understood,"
    if int.from_bytes(magic.to_bytes(4, "little"), "big") & 0xFFFFFF00 == MAGIC:
        return "record in big-endian byte order, only little-endian is understood,"
    return f"no blktrace record (it begins with {magic:#010x})"
