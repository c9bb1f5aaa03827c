"""Files and constants of blktrace (include/uapi/linux/blktrace_api.h)."""

from __future__ import annotations

import errno
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from drivelab.core.errors import UserError

MAGIC = 0x65617400
VERSIONS = (7, 8)
"""Versions of the records: 8 has 64 bits for the action (Linux 6.19)."""
ACTIONS = "?QMFGSRDCPUUIXBA"
"""Letters of actions 1 to 15 as in blkparse(1); 10 is an unplug, 11 a timer unplug (`UT` there)."""
READ, WRITE, FLUSH, SYNC, PASSTHROUGH, NOTIFY, READAHEAD, META, DISCARD, FUA = (
    1 << (16 + bit) for bit in (0, 1, 2, 3, 9, 10, 11, 12, 13, 15)
)
WRITE_ZEROES = 1 << (16 + 22)
"""Only in records of version 8."""
SECTOR_BYTES = 512
NAME_BYTES = 16
"""Length of a process name in a note, with the final zero (TASK_COMM_LEN)."""


_CPU_FILE = re.compile(r"(.+)\.blktrace\.(\d+)(\.gz|\.zst|\.bz2|\.xz)?")
_UNPACK = {".gz": "gunzip", ".zst": "unzstd", ".bz2": "bunzip2", ".xz": "unxz"}


def cpu_files(source: Path) -> dict[int, Path]:
    """Return a capture's files by CPU; `source` is a directory, a base name, or a file.

    The base name is as for `blkparse -i`. A file of one CPU stands for all files of its capture; any other file is a
    merged dump (`blkparse -d`). Raises UserError when there is no capture, a directory has several, or the files are
    compressed.
    """
    folder, base = (source, None) if source.is_dir() else (source.parent, source.name)
    if source.is_file() and (match := _CPU_FILE.fullmatch(source.name)):
        base = match[1]
    captures: dict[str, dict[int, Path]] = {}
    for path in sorted(folder.iterdir(), reverse=True) if folder.is_dir() else ():  # a file after its compressed copy
        match = _CPU_FILE.fullmatch(path.name)
        if match and base in (None, match[1]):
            captures.setdefault(match[1], {})[int(match[2])] = path
    if not captures and source.is_file():
        return {0: source}
    if not captures:
        raise UserError(
            f"{source}: has no capture (files NAME.blktrace.CPU); name its folder, base name or merged dump"
        )
    if len(captures) > 1:
        raise UserError(f"{source}: has several captures ({', '.join(sorted(captures))}); name one of them")
    ((name, files),) = captures.items()
    if packed := next((path.suffix for path in files.values() if path.suffix in _UNPACK), None):
        pattern = f"{shlex.quote(str(folder / name))}.blktrace.*{packed}"
        raise UserError(f"{source}: its files are compressed; unpack them first: {_UNPACK[packed]} {pattern}")
    return dict(sorted(files.items()))


def is_merged_dump(files: Mapping[int, Path]) -> bool:
    """Return whether a capture is one file without the name of a CPU's file."""
    return not all(_CPU_FILE.fullmatch(path.name) for path in files.values())


def device_number(name: str) -> int:
    """Return a record's device number for `MAJOR:MINOR`; raise UserError for others."""
    match = re.fullmatch(r"(\d{1,3}):(\d{1,7})", name)
    if not match:
        raise UserError(f"device '{name}' is not MAJOR:MINOR; write it as lsblk prints it, such as 259:0")
    return int(match[1]) << 20 | int(match[2])


def device_name(number: int) -> str:
    """Return `MAJOR:MINOR` of a record's device."""
    return f"{number >> 20}:{number & 0xFFFFF}"


def wrong_magic(magic: int) -> str:
    """Return what is wrong with the first four bytes of a record."""
    known = " or ".join(map(str, VERSIONS))
    if magic & 0xFFFFFF00 == MAGIC:
        return f"a record has version {magic & 0xFF} instead of {known}"
    if int.from_bytes(magic.to_bytes(4, "little"), "big") & 0xFFFFFF00 == MAGIC:
        return "a record has big-endian byte order instead of little-endian"
    return f"no blktrace record but {magic:#010x}"


def refuse_source(output: Path, sources: Iterable[Path]) -> None:
    """Raise UserError when the output is a source, also under another name."""
    for source in sources:
        try:
            same = output.samefile(source)
        except OSError:
            same = output.absolute() == source.absolute()
        if same:
            raise UserError(f"{output}: is also the input and would be lost; give -o another name")


@contextmanager
def writable(output: Path, sources: Iterable[Path] = ()) -> Iterator[None]:
    """Refuse an output that is a source, and turn write errors into UserError; the command reports a full disk."""
    refuse_source(output, sources)
    if output.is_dir():
        raise UserError(f"{output}: is a folder; name a file in it")
    if output.exists() and not output.is_file():
        raise UserError(f"{output}: is not a regular file and would be replaced; give -o another name")
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise UserError(f"{output}: cannot be written ({error.strerror or error}); give -o another place") from None
