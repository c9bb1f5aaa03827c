"""What a quick look measures: a folder, a device for reading only, or a drive of the sheet."""

from __future__ import annotations

import mmap
import os
import re
import shlex
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from drivelab.core.errors import UserError, suggestion
from drivelab.core.files import real_path
from drivelab.core.units import format_amount, format_size
from drivelab.drives import sysfs
from drivelab.plan.drive_sheet import COLUMNS, KIND, SIZE, SheetRow, load_sheet
from drivelab.plan.places import COMMAND
from drivelab.plan.subject_kinds import FILE, KINDS, READ_ONLY
from drivelab.run import guest

USUAL_BYTES = 8 << 30
"""Size of the file in the protocol quick."""
LEAST_BYTES = 16 << 20
"""Less would be a test of caches."""
_PROBE_S = 1.0
_PROBE_BYTES = 64 << 20
_BUFFER_BYTES = 1 << 20
_LONGEST_NAME = 30
_OTHER = re.compile(r"[^a-z0-9]+")


def subject_of(text: str, sheet: Mapping[str, SheetRow], sheet_path: Path) -> SheetRow:
    """Return the row for a folder, a block device or a drive of the sheet, without the size of a folder's file.

    Raises UserError for anything else.
    """
    path = real_path(text)
    if path.is_dir():
        serial = guest.file_system(path, text)
        return SheetRow(name_of(path), str(path), serial, False, "", text, kind=FILE.name)
    if path.is_block_device():
        _refuse_unreadable(path)
        serial = guest.identifier(sysfs.kernel_name(str(path)))
        return SheetRow(name_of(path), str(path), serial, False, "", text, kind=READ_ONLY.name)
    if text in sheet:
        row = sheet[text]
        if KINDS[row.kind].destroyed and not row.destructive:
            raise UserError(
                f"{row.source}: drive '{text}' has destructive: no, and a quick look writes to a drive of the sheet. "
                f"Enter yes if all its data may be destroyed, or only read it: {COMMAND} quick {row.device}"
            )
        return row
    if path.exists():
        raise UserError(
            f"{text} is neither a folder nor a block device. Name the folder on the drive that you want to look at, "
            f"such as {shlex.quote(str(path.parent))}"
        )
    hint = suggestion(text, sheet)
    raise UserError(f"there is no folder or device {text}, and no drive of this name in {sheet_path}; {hint}")


def _refuse_unreadable(device: Path) -> None:
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise UserError(
            f"{device} cannot be read ({error.strerror}). Run as root or as a user who may read it, or name a folder "
            "on it."
        ) from None


def name_of(path: Path) -> str:
    """Return a name for a place that the sheet accepts, such as `mnt-data`."""
    text = _OTHER.sub("-", str(path).removeprefix("/dev/").lower()).strip("-")
    return text[-_LONGEST_NAME:].strip("-") or "root"


def unique(row: SheetRow, others: Iterable[SheetRow]) -> SheetRow:
    """Return the row of the same subject in `others`, else the row with a name that none of them has."""
    others = list(others)
    for other in others:
        same = ("device", "serial", "kind", "size_bytes", "members", "firmware")
        if all(getattr(other, field) == getattr(row, field) for field in same):
            return other
    taken = {other.drive for other in others}
    names = (row.drive, *(f"{row.drive}-{number}" for number in range(2, len(taken) + 3)))
    return replace(row, drive=next(name for name in names if name not in taken))


def line_of(row: SheetRow) -> str:
    """Return the row as a line of a sheet with the columns of HEADER."""
    size = "" if row.size_bytes is None else format_size(row.size_bytes)
    fields = (row.drive, row.device, row.serial, "yes" if row.destructive else "no", row.note, row.kind, size,
              " ".join(row.members), row.firmware or "")  # fmt: skip
    return "\t".join(fields)


HEADER = "\t".join((*COLUMNS, KIND, SIZE, "members", "firmware"))


def known_size(row: SheetRow, results: Path) -> int | None:
    """Return the size of the file in the latest quick look at a folder, which the sheet has first; None without one."""
    sheet = results / "drives.tsv"
    known = load_sheet(sheet).values() if sheet.exists() else ()
    sizes = (other.size_bytes for other in known if (other.device, other.serial) == (row.device, row.serial))
    return next(sizes, None)


def size_for(folder: Path, wanted_bytes: int | None, fill_s: float) -> int:
    """Return the size of the file: `wanted_bytes`, or what the folder writes in `fill_s` seconds, at most USUAL_BYTES.

    The latter is a power of two, so that a later look has the same size. Raises UserError if too little space is free.
    """
    most = guest.most_bytes(folder)
    if wanted_bytes is not None:
        if wanted_bytes > most:
            raise UserError(
                f"{folder}: a file of {format_amount(wanted_bytes)} leaves too little space; there is room for "
                f"{format_amount(most)}. Free some space, or give a smaller --size."
            )
        return wanted_bytes
    if not os.statvfs(folder).f_blocks:
        raise UserError(f"{folder} keeps no files: the kernel makes it up. Name a folder on a drive.")
    if most < LEAST_BYTES:
        raise UserError(
            f"{folder}: there is room for a file of {format_amount(most)} only, and a quick look needs "
            f"{format_amount(LEAST_BYTES)}. Free some space, or name another folder."
        )
    size = USUAL_BYTES
    fast_enough = _written_per_second(folder) * fill_s
    while size > LEAST_BYTES and size > min(most, fast_enough):
        size //= 2
    return size


def _written_per_second(folder: Path) -> float:
    """Write random data to a temporary file for at most a second, and return the bytes per second."""
    file = guest.nameless(folder, str(folder))
    try:
        flags = os.O_DIRECT if guest.has_direct_io(file) else os.O_SYNC
        descriptor = os.open(f"/proc/self/fd/{file}", os.O_WRONLY | os.O_CLOEXEC | flags)
    finally:
        os.close(file)
    try:
        with mmap.mmap(-1, _BUFFER_BYTES) as buffer:  # aligned to a page, as direct I/O needs
            buffer.write(os.urandom(_BUFFER_BYTES))
            started_s, written = time.monotonic(), 0
            while written < _PROBE_BYTES and time.monotonic() - started_s < _PROBE_S:
                written += os.pwrite(descriptor, buffer, written)
            return written / (time.monotonic() - started_s)
    finally:
        os.close(descriptor)
