"""The files of a capture and the words of blktrace (include/uapi/linux/blktrace_api.h)."""

from __future__ import annotations

import re
from pathlib import Path

from drivelab.errors import UserError

MAGIC = 0x65617400
VERSIONS = (7, 8)
"""Of the records: 8 has 64 bits for the action (Linux 6.19)."""
ACTIONS = "?QMFGSRDCPUUIXBA"
"""Letters of the actions 1 to 15 as blkparse(1) prints them; 10 is an unplug, 11 one by the timer (`UT` there)."""
READ, WRITE, FLUSH, SYNC, PASSTHROUGH, NOTIFY, READAHEAD, META, DISCARD, FUA = (
    1 << (16 + bit) for bit in (0, 1, 2, 3, 9, 10, 11, 12, 13, 15)
)
SECTOR_BYTES = 512
NAME_BYTES = 16
"""Of a process name in a note, with the zero at its end (TASK_COMM_LEN)."""


def cpu_files(source: Path) -> dict[int, Path]:
    """Files of a capture by CPU; `source` is its directory, or a base name as for `blkparse -i`.

    Raises UserError when there is none, or when a directory holds several captures.
    """
    pattern = re.compile(r"(.+)\.blktrace\.(\d+)")
    folder, base = (source, None) if source.is_dir() else (source.parent, source.name)
    found: dict[str, dict[int, Path]] = {}
    for path in folder.iterdir() if folder.is_dir() else ():
        if match := pattern.fullmatch(path.name):
            found.setdefault(match[1], {})[int(match[2])] = path
    if base is not None:
        found = {base: found[base]} if base in found else {}
    if not found:
        raise UserError(f"{source}: holds no capture (files NAME.blktrace.CPU); name its folder or base name")
    if len(found) > 1:
        raise UserError(f"{source}: holds several captures ({', '.join(sorted(found))}); name one of them")
    return dict(sorted(*(files.items() for files in found.values())))


def letter(kind: int) -> str:
    """What blkparse prints for an action's number."""
    return ACTIONS[kind] if 0 < kind < len(ACTIONS) else f"action {kind}"


def device_number(name: str) -> int:
    """The device of a record for `MAJOR:MINOR`; raises UserError for anything else."""
    match = re.fullmatch(r"(\d{1,3}):(\d{1,7})", name)
    if not match:
        raise UserError(f"device '{name}' is no pair of numbers; write it as lsblk prints it, such as 259:0")
    return int(match[1]) << 20 | int(match[2])


def device_name(number: int) -> str:
    """`MAJOR:MINOR` of a record's device."""
    return f"{number >> 20}:{number & 0xFFFFF}"


def wrong_magic(magic: int) -> str:
    """What is wrong with the first four bytes of a record."""
    known = " and ".join(map(str, VERSIONS))
    if magic & 0xFFFFFF00 == MAGIC:
        return f"there is a record of version {magic & 0xFF}, only {known} are understood,"
    if int.from_bytes(magic.to_bytes(4, "little"), "big") & 0xFFFFFF00 == MAGIC:
        return "there is a record in big-endian byte order, only little-endian is understood,"
    return f"there is no blktrace record (but {magic:#010x})"
