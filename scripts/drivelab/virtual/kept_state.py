"""The saved state of a virtual drive whose server has ended: FOLDER/NAME.flash.

Content: a line of JSON (format, model, times), a line with the state of the flash, the data of the mapped pages in
order (unmapped pages are zeros), and the CRC-32 of all of this. Uncompressed, because deflating 64 MiB of random data
takes two seconds and writing it a tenth of a second. Standard library only.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import ECONNABORTED, ENODEV, ENOTCONN
from itertools import chain
from pathlib import Path
from threading import Thread
from zlib import crc32

from drivelab.core.errors import UserError
from drivelab.core.files import put_in_place
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel
from drivelab.virtual.server import XATTR

KEPT_DRIVES = "virtual"
"""Folder in the results of a study for the drives of an unfinished run."""
_FORMAT = 2
_CRC_BYTES = 4


def kept_file(folder: Path, name: str) -> Path:
    """Return the absolute path of the saved state of a drive."""
    return folder.resolve() / f"{name}.flash"


def discard(file: Path) -> None:
    """Remove a saved state, complete or partial, if there is one; raises OSError."""
    with suppress(FileNotFoundError, NotADirectoryError):
        file.unlink()
    discard_part(file)


def discard_part(file: Path) -> None:
    """Try to remove a partial file of a killed server; drivelab never reads partial files."""
    with suppress(OSError):
        _part(file).unlink()


def write(file: Path, drive: FlashDrive, data: memoryview, now_us: float) -> None:
    """Save a drive with its data, all or nothing; `now_us` is the model's current time. Raises OSError."""
    part = _part(file)
    try:
        with part.open("wb") as target:
            for piece in dump(drive, data, now_us, time.time()):
                target.write(piece)
        put_in_place(part, file)
    except OSError:
        discard_part(file)
        raise


def read(file: Path, model: DriveModel, data: memoryview, now_us: float) -> FlashDrive | None:
    """Load a saved drive, and its data into the all-zero `data`; None, and `data` unchanged, without a usable file.

    Not usable: a missing or damaged file, or a file of another format or another model.
    """
    try:
        drive = load(file.read_bytes(), model, data, now_us, time.time())
    except (OSError, ValueError):
        return None
    drive.advance(now_us)
    return drive


def dump(drive: FlashDrive, data: memoryview, now_us: float, wall_s: float) -> Iterator[bytes | memoryview]:
    """Yield the pieces of the file; `now_us` is the current time of the model's clock, `wall_s` of the calendar."""
    head = {"format": _FORMAT, "model": drive.model.to_mapping(), "now_us": now_us, "wall_s": wall_s}
    pieces: Iterator[bytes | memoryview] = chain(
        [json.dumps(head).encode() + b"\n", drive.dump() + b"\n"],
        (data[offset : offset + length] for offset, length in _mapped_runs(drive)),
    )
    crc = 0
    for piece in pieces:
        crc = crc32(piece, crc)
        yield piece
    yield crc.to_bytes(_CRC_BYTES, "little")


def load(file: bytes, model: DriveModel, data: memoryview, now_us: float, wall_s: float) -> FlashDrive:
    """Load a drive from `dump` as it is at `now_us` and `wall_s`; it was idle since it was saved.

    Writes its data into the all-zero `data`. Raises ValueError, and leaves `data` unchanged, if the file is damaged or
    has another format or another model.
    """
    body = memoryview(file)[:-_CRC_BYTES]
    if crc32(body) != int.from_bytes(file[-_CRC_BYTES:], "little"):
        raise ValueError("it is damaged")
    head_end = file.index(b"\n")
    flash_end = file.index(b"\n", head_end + 1)
    head = json.loads(file[:head_end])
    if not isinstance(head, dict) or head.get("format") != _FORMAT:
        raise ValueError(f"its format is not {_FORMAT}")
    if head["model"] != model.to_mapping():
        raise ValueError("its drive has another model")
    drive = FlashDrive(model)
    drive.load(file[head_end + 1 : flash_end])
    pages = body[flash_end + 1 :]
    runs = list(_mapped_runs(drive))
    if len(pages) != sum(length for _, length in runs):
        raise ValueError("its amount of data does not match the mapped pages")
    at = 0
    for offset, length in runs:
        data[offset : offset + length] = pages[at : at + length]
        at += length
    pause_us = 1e6 * max(wall_s - head["wall_s"], 0.0)
    drive.shift(now_us - pause_us - head["now_us"])
    return drive


def _mapped_runs(drive: FlashDrive) -> Iterator[tuple[int, int]]:
    """Yield offset and length in bytes of each run of mapped pages, by offset."""
    first: int | None = None
    for page in range(drive.model.user_pages + 1):
        if page < drive.model.user_pages and drive.is_mapped(page):
            first = page if first is None else first
        elif first is not None:
            yield first * PAGE_BYTES, (page - first) * PAGE_BYTES
            first = None


def _part(file: Path) -> Path:
    return file.with_name(f"{file.name}.part")


_PROBE_TIMEOUT_S = 30.0
_WRITE_TIMEOUT_S = 60.0
_DEATHS = (ECONNABORTED, ENODEV, ENOTCONN)
"""Errors of a request whose server has ended; a server also ends after it has saved the drive."""


def keep_drive(name: str, mount_point: str | None, file: Path, *, force: bool) -> None:
    """Ask the server to save the drive; return when it has ended or will not answer. A saved drive is in `file`.

    `mount_point` is None for a drive whose server cannot answer. Raises UserError, unless `force` is set, if the file
    cannot be written; the drive then keeps running.
    """
    try:
        discard(file)
        if mount_point is None:
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        refusal = _ask_to_keep(mount_point, file)
    except OSError as error:
        refusal = error
    if refusal is not None and not force:
        raise UserError(
            f"virtual drive '{name}' was not stopped: its state cannot be saved in {file} ({refusal.strerror}); choose "
            "another folder, or stop the drive without saving its state"
        )


def _ask_to_keep(mount_point: str, file: Path) -> OSError | None:
    """Ask the server to save the drive; return its error if it could not write the file."""
    # Only reading an attribute does not need the inode lock, which a hanging flush or trim holds.
    if _outcome(lambda: os.getxattr(mount_point, XATTR + "hangs"), _PROBE_TIMEOUT_S) != b"0":
        return None
    outcome = _outcome(lambda: os.setxattr(mount_point, XATTR + "keep", bytes(file)), _WRITE_TIMEOUT_S)
    return outcome if isinstance(outcome, OSError) and outcome.errno not in _DEATHS else None


def _outcome(call: Callable[[], bytes | None], timeout_s: float) -> bytes | OSError | None:
    """Return what a call returns or raises; None after `timeout_s`, then it runs until the connection is aborted."""
    outcome: list[bytes | OSError | None] = []

    def run() -> None:
        try:
            outcome.append(call())
        except OSError as error:
            outcome.append(error)

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout_s)
    return outcome[0] if outcome else None
