"""The file in which a virtual drive outlives its server: FOLDER/NAME.flash.

A line of JSON (format, model, times), a line with the state of the flash, the data of the mapped pages one after
another (unmapped pages are zeros), and the CRC-32 of all that. Plain, because deflating 64 MiB of random data takes
two seconds and writing them a tenth of one. Standard library only.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel

KEPT_DRIVES = "virtual"
"""Folder, below the results of a study, for the drives of a run that did not finish."""
_FORMAT = 1
_CRC_BYTES = 4


def kept_file(folder: Path, name: str) -> Path:
    """Where the state of the drive of that name is kept; absolute."""
    return folder.resolve() / f"{name}.flash"


def discard(file: Path) -> None:
    """Remove a kept state, if there is one, whole or half. Raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        file.unlink()
    discard_part(file)


def discard_part(file: Path) -> None:
    """Remove what a server that was ended while it wrote a file has left, if it can be: nothing ever reads it."""
    with suppress(OSError):
        _part(file).unlink()


def write(file: Path, drive: FlashDrive, data: memoryview, now_us: float) -> None:
    """Keep a drive with its data, all or nothing; `now_us` is the model's present. Raises OSError."""
    part = _part(file)
    try:
        with part.open("wb") as target:
            for piece in dump(drive, data, now_us, time.time()):
                target.write(piece)
        part.replace(file)
    except OSError:
        discard_part(file)
        raise


def read(file: Path, model: DriveModel, data: memoryview, now_us: float) -> FlashDrive | None:
    """The drive in a file, and its data into the zeros of `data`; None, and `data` untouched, if there is none to use.

    That is: no file, a damaged one, one of another format or of another model.
    """
    try:
        drive = load(file.read_bytes(), model, data, now_us, time.time())
    except (OSError, ValueError):
        return None
    drive.advance(now_us)
    return drive


def dump(drive: FlashDrive, data: memoryview, now_us: float, wall_s: float) -> Iterator[bytes | memoryview]:
    """The pieces of the file; `now_us` is the present on the model's clock and `wall_s` that on the calendar."""
    crc = 0
    for piece in _pieces(drive, data, now_us, wall_s):
        crc = crc32(piece, crc)
        yield piece
    yield crc.to_bytes(_CRC_BYTES, "little")


def load(file: bytes, model: DriveModel, data: memoryview, now_us: float, wall_s: float) -> FlashDrive:
    """The drive from `dump` as it is at `now_us` and `wall_s`: the time since then has passed for it without a request.

    Writes its data into `data`, which is all zeros. Raises ValueError, and leaves `data` alone, for a file that is
    damaged, of another format or of another model.
    """
    body = memoryview(file)[:-_CRC_BYTES]
    if crc32(body) != int.from_bytes(file[-_CRC_BYTES:], "little"):
        raise ValueError("it is damaged")
    head_end = file.index(b"\n")
    flash_end = file.index(b"\n", head_end + 1)
    head = json.loads(file[:head_end])
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise ValueError(f"it is not of format {_FORMAT}")
    if head["model"] != model.to_mapping():
        raise ValueError("it is of a drive of another model")
    drive = FlashDrive(model)
    drive.load(file[head_end + 1 : flash_end])
    pages = body[flash_end + 1 :]
    runs = list(_mapped_runs(drive))
    if len(pages) != sum(length for _, length in runs):
        raise ValueError("it has more or fewer data than mapped pages")
    at = 0
    for offset, length in runs:
        data[offset : offset + length] = pages[at : at + length]
        at += length
    pause_us = 1e6 * max(wall_s - head["wall_s"], 0.0)
    drive.shift(now_us - pause_us - head["now_us"])
    return drive


def _pieces(drive: FlashDrive, data: memoryview, now_us: float, wall_s: float) -> Iterator[bytes | memoryview]:
    head = {"format": _FORMAT, "model": drive.model.to_mapping(), "now_us": now_us, "wall_s": wall_s}
    yield json.dumps(head).encode() + b"\n"
    yield drive.dump() + b"\n"
    for offset, length in _mapped_runs(drive):
        yield data[offset : offset + length]


def _mapped_runs(drive: FlashDrive) -> Iterator[tuple[int, int]]:
    """Offset and length in bytes of each run of mapped pages, by offset."""
    first: int | None = None
    for page in range(drive.model.user_pages + 1):
        if page < drive.model.user_pages and drive.is_mapped(page):
            first = page if first is None else first
        elif first is not None:
            yield first * PAGE_BYTES, (page - first) * PAGE_BYTES
            first = None


def _part(file: Path) -> Path:
    return file.with_name(f"{file.name}.part")
