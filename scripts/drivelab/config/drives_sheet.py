"""The drive sheet, drives.tsv: the only list of drives that may be written to."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from drivelab.errors import UserError
from drivelab.files import read_text

COLUMNS = ("drive", "device", "serial", "destructive", "note")
ENDURANCE = "endurance_tbw"
"""A column that may be left out: bytes that the maker lets be written, in units of 10^12."""
OVER_PROVISIONING = "over_provisioning_pct"
"""A column that may be left out: flash beyond the capacity, in percent of the capacity."""
HOST = "host"
"""A column that may be left out: the machine that the drive is attached to, as `uname -n` or Slurm calls it."""
FIRMWARE = "firmware"
"""A column that may be left out: pins the firmware. A drive that tells another one is refused; an update that is
entered here has the drive measured anew."""
OPTIONAL = (ENDURANCE, OVER_PROVISIONING, HOST, FIRMWARE)
_MOST_OVER_PROVISIONING_PCT = 400
"""Beyond any drive: a larger number is a capacity, or bytes."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_HOST = re.compile(r"(?!any$)[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_NUMBER = re.compile(r"\d{1,12}(\.\d+)?", re.ASCII)
_DEVICE = re.compile(r"virtual:[a-z0-9][a-z0-9-]{0,40}|/dev/disk/by-id/[A-Za-z0-9_.:+=@-]+")


@dataclass(frozen=True)
class SheetRow:
    """One drive under test, pinned by path and serial."""

    drive: str
    """What it is called: lower-case letters, digits and hyphens."""
    device: str
    """A by-id path, or `virtual:NAME` for a model of config/virtual_drives.yaml."""
    serial: str
    """What the drive itself tells."""
    destructive: bool
    """Whether all its data may be destroyed: yes or no."""
    note: str
    """Anything."""
    source: str
    """File and line, for errors."""
    endurance_bytes: float | None = None
    """Rated endurance: host bytes written over the drive's life; None where the sheet does not say."""
    over_provisioning: float | None = None
    """Flash beyond the capacity, as a fraction of the capacity; None where the sheet does not say."""
    host: str | None = None
    """The machine that the drive is attached to; None for whichever host the study is run on."""
    firmware: str | None = None
    """The firmware that the drive is pinned to; None where the sheet does not say."""

    @property
    def virtual(self) -> str | None:
        """Name of the virtual drive, or None for a real one."""
        return self.device.removeprefix("virtual:") if self.device.startswith("virtual:") else None


def load_sheet(path: Path) -> dict[str, SheetRow]:
    """Rows by drive name; raises UserError with file and line for anything wrong."""
    text = read_text(path, f"a sheet of tab-separated text with the columns {', '.join(COLUMNS)}")
    try:
        lines = list(csv.reader(StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read as tab-separated text ({error}); correct the file") from None
    columns = tuple(lines[0]) if lines else ()
    more = columns[len(COLUMNS) :]
    if columns[: len(COLUMNS)] != COLUMNS or len(set(more)) < len(more) or not set(more) <= set(OPTIONAL):
        raise UserError(
            f"{path} line 1: the columns must be {', '.join(COLUMNS)} and perhaps {', '.join(OPTIONAL)}, separated by "
            "tabs; mend the line"
        )
    rows: dict[str, SheetRow] = {}
    seen: dict[tuple[str, str], SheetRow] = {}
    for number, fields in enumerate(lines[1:], start=2):
        if fields and any(field.strip() for field in fields) and not fields[0].startswith("#"):
            row = _row(fields, columns, f"{path} line {number}")
            _refuse_twice(seen, row)
            rows[row.drive] = row
    return rows


def _row(fields: list[str], columns: tuple[str, ...], source: str) -> SheetRow:
    if len(fields) != len(columns):
        raise UserError(
            f"{source}: has {len(fields)} fields, the header names {len(columns)} columns; name a further column "
            f"({', '.join(OPTIONAL)}) in the header, and give every row its field (empty if not known), separated by "
            "one tab each"
        )
    drive, device, serial, destructive, note, *rest = (field.strip() for field in fields)
    if not _NAME.fullmatch(drive):
        raise UserError(f"{source}: drive '{drive}' is no name; use lower-case letters, digits and hyphens")
    if not _DEVICE.fullmatch(device):
        raise UserError(
            f"{source}: device '{device}' is neither a path under /dev/disk/by-id nor virtual:NAME; "
            "names such as /dev/sda change from boot to boot, so pin the drive by its id"
        )
    if not serial:
        raise UserError(f"{source}: drive '{drive}' has no serial; read it with lsblk -o NAME,SERIAL and enter it")
    if destructive not in ("yes", "no"):
        raise UserError(f"{source}: destructive is '{destructive}'; write yes (all its data may be destroyed) or no")
    more = dict(zip(columns[len(COLUMNS) :], rest, strict=True))
    return SheetRow(
        drive, device, serial, destructive == "yes", note, source,
        _endurance_bytes(more.get(ENDURANCE, ""), source), _over_provisioning(more.get(OVER_PROVISIONING, ""), source),
        _host(more.get(HOST, ""), source), more.get(FIRMWARE) or None,
    )  # fmt: skip


def _endurance_bytes(text: str, source: str) -> float | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or float(text) == 0:
        raise UserError(f"{source}: {ENDURANCE} is '{text}'; write the terabytes that may be written, such as 600")
    return 1e12 * float(text)


def _over_provisioning(text: str, source: str) -> float | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or float(text) > _MOST_OVER_PROVISIONING_PCT:
        raise UserError(
            f"{source}: {OVER_PROVISIONING} is '{text}'; write the flash beyond the capacity in percent of it, "
            f"such as 28, at most {_MOST_OVER_PROVISIONING_PCT}"
        )
    return float(text) / 100


def _host(text: str, source: str) -> str | None:
    if text and not _HOST.fullmatch(text):
        raise UserError(
            f"{source}: {HOST} is '{text}'; write the name of the machine as uname -n says it there, or leave the "
            "field empty for whichever host the study is run on"
        )
    return text or None


def _refuse_twice(seen: dict[tuple[str, str], SheetRow], row: SheetRow) -> None:
    """`seen` has the rows so far by each value that is theirs alone; this one is entered."""
    for what in ("drive", "device", "serial"):
        other = seen.setdefault((what, getattr(row, what)), row)
        if other is not row:
            raise UserError(
                f"{row.source}: {what} '{getattr(row, what)}' stands on line {other.source.rsplit(' ', 1)[1]} "
                "already; every drive has one row of its own"
            )
