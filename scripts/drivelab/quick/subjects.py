"""What a quick look measures: a folder, a device for reading only, or a drive of the sheet."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import chain, count
from pathlib import Path

from drivelab.core.errors import UserError, suggestion
from drivelab.core.files import real_path
from drivelab.core.units import format_amount, format_size
from drivelab.drives import sysfs
from drivelab.plan.drive_sheet import COLUMNS, KIND, SIZE, SheetRow
from drivelab.plan.places import COMMAND
from drivelab.plan.subject_kinds import FILE, KINDS, READ_ONLY
from drivelab.run import guest

USUAL_BYTES = 8 << 30
"""Size of the file in the protocol quick."""
LEAST_BYTES = 16 << 20
"""Less would be a test of caches."""
_FILL_SHARE = 0.15
"""Share of the time that writing the file may take."""
_PROBE_S, _PROBE_BYTES, _CHUNK_BYTES = 1.0, 64 << 20, 4 << 20
_LONGEST_NAME = 30


def subject_of(text: str, sheet: Mapping[str, SheetRow], sheet_path: Path) -> SheetRow:
    """Return the row for a folder, a block device or a drive of the sheet, without the size of a folder's file.

    Raises UserError for anything else.
    """
    path = real_path(text)
    if path.is_dir():
        return SheetRow(name_of(path), str(path), guest.file_system(path, text), False, "", text, kind=FILE.name)
    if path.is_block_device():
        if not os.access(path, os.R_OK):
            raise UserError(f"{path} cannot be read. Run as root or as a user who may read it, or name a folder on it.")
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
    hint = suggestion(text, sheet)
    raise UserError(f"there is no folder or block device {text}, and no drive of this name in {sheet_path}; {hint}")


def name_of(path: Path) -> str:
    """Return a name for a place that the sheet accepts, such as `mnt-data`."""
    text = re.sub(r"[^a-z0-9]+", "-", str(path).removeprefix("/dev/").lower()).strip("-")
    return text[-_LONGEST_NAME:].strip("-") or "root"


def unique(row: SheetRow, others: Collection[SheetRow]) -> SheetRow:
    """Return the row of the same subject in `others`, else the row with a name that none of them has."""
    known = {line_of(replace(other, drive="", note="")): other for other in others}
    if (same := known.get(line_of(replace(row, drive="", note="")))) is not None:
        return same
    taken = {other.drive for other in others}
    names = chain([row.drive], (f"{row.drive}-{number}" for number in count(2)))
    return replace(row, drive=next(name for name in names if name not in taken))


HEADER = "\t".join((*COLUMNS, KIND, SIZE, "members", "firmware"))


def line_of(row: SheetRow) -> str:
    """Return the row as a line of a sheet with the columns of HEADER."""
    size = "" if row.size_bytes is None else format_size(row.size_bytes)
    fields = (row.drive, row.device, row.serial, "yes" if row.destructive else "no", row.note, row.kind, size,
              " ".join(row.members), row.firmware or "")  # fmt: skip
    return "\t".join(fields)


def size_for(folder: Path, wanted_bytes: int | None, before_bytes: int | None, time_s: float) -> int:
    """Return the size of the file: as wanted, else as before, else what is written in a part of the time.

    The last is a power of two, at most USUAL_BYTES. Raises UserError if too little space is free.
    """
    most = guest.most_bytes(folder)
    if not os.statvfs(folder).f_blocks:
        raise UserError(f"{folder} keeps no files: the kernel makes it up. Name a folder on a drive.")
    if most < (least := wanted_bytes or LEAST_BYTES):
        raise UserError(
            f"{folder}: a file of {format_amount(least)} leaves too little space; there is room for "
            f"{format_amount(most)}. Free some space, give a smaller --size, or name another folder."
        )
    if wanted_bytes is not None or (before_bytes is not None and before_bytes <= most):
        return wanted_bytes or before_bytes or 0
    size, fast_enough = USUAL_BYTES, _written_per_second(folder) * _FILL_SHARE * time_s
    while size > LEAST_BYTES and size > min(most, fast_enough):
        size //= 2
    return size


def _written_per_second(folder: Path) -> float:
    """Write random data to a temporary file for about a second, and return the bytes per second."""
    file = guest.nameless(folder, str(folder))
    try:
        data, started_s, written = os.urandom(_CHUNK_BYTES), time.monotonic(), 0
        while written < _PROBE_BYTES and time.monotonic() - started_s < _PROBE_S:
            written += os.write(file, data)
            os.fdatasync(file)
        return written / (time.monotonic() - started_s)
    finally:
        os.close(file)
