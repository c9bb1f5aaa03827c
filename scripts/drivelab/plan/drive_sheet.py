"""Read drives.tsv, the only list of drives and other subjects that drivelab may write to."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.files import read_text
from drivelab.core.units import parse_size
from drivelab.plan.subject_kinds import DRIVE, FILE, KINDS, Kind

COLUMNS = ("drive", "device", "serial", "destructive", "note")
ENDURANCE = "endurance_tbw"
"""Optional column: rated endurance in terabytes written (10^12 bytes)."""
OVER_PROVISIONING = "over_provisioning_pct"
"""Optional column: over-provisioning, the flash beyond the capacity, in percent of the capacity."""
HOST = "host"
"""Optional column: the machine that the drive is attached to, as `uname -n` or Slurm names it."""
FIRMWARE = "firmware"
"""Optional column: the pinned firmware. A drive that reports another firmware is refused. A changed entry has the
drive measured again."""
MODEL = "model"
"""Optional column: drives with the same entry are specimens of one model. Several specimens on both sides allow a
verdict on models."""
KIND = "kind"
"""Optional column: what the row describes, one of the kinds below; empty for a whole drive."""
MEMBERS = "members"
"""Optional column: serial numbers, separated by spaces, of all disks that carry a partition, volume or array. Nothing
else on these disks may be in use."""
SIZE = "size"
"""Optional column: size of the temporary file of a row with the kind `file`, such as 16GiB."""
OPTIONAL = (ENDURANCE, OVER_PROVISIONING, HOST, FIRMWARE, MODEL, KIND, MEMBERS, SIZE)
_MOST_OVER_PROVISIONING_PCT = 400
"""No drive has more: a larger number is a capacity or a number of bytes."""
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
HOST_NAME = re.compile(r"(?!any$)[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,60}")
_NUMBER = re.compile(r"\d{1,12}(\.\d+)?", re.ASCII)


@dataclass(frozen=True)
class SheetRow:
    """One drive or other subject under test, pinned by path and serial."""

    drive: str
    """Name: lower-case letters, digits and hyphens."""
    device: str
    """A by-id path, or `virtual:NAME` for a model in config/virtual_drives.yaml; other kinds have other paths."""
    serial: str
    """Serial number that the drive reports; of another kind, the identifier that pins it."""
    destructive: bool
    """Whether drivelab may destroy all its data."""
    note: str
    """Free text."""
    source: str
    """File and line, for errors."""
    endurance_bytes: float | None = None
    """Rated endurance: host bytes written over the drive's life; None if the sheet does not give it."""
    over_provisioning: float | None = None
    """Flash beyond the capacity, as a fraction of the capacity; None if the sheet does not give it."""
    host: str | None = None
    """The machine that the drive is attached to; None for the host that runs the study."""
    firmware: str | None = None
    """The firmware that the drive is pinned to; None if the sheet does not give it."""
    model: str | None = None
    """The model that the drive is a specimen of; None if the sheet does not give it."""
    kind: str = DRIVE.name
    """What the row describes, a key of `KINDS`."""
    members: tuple[str, ...] = ()
    """Sorted serial numbers of the disks that carry a partition, volume or array."""
    size_bytes: int | None = None
    """Size of the temporary file of a row with the kind `file`; None for other kinds."""

    @property
    def virtual(self) -> str | None:
        """Return the name of the virtual drive, or None for a real drive."""
        return self.device.removeprefix("virtual:") if self.device.startswith("virtual:") else None


def load_sheet(path: Path) -> dict[str, SheetRow]:
    """Return rows by drive name; raises UserError with file and line for any fault."""
    text = read_text(path, f"a sheet of tab-separated text with the columns {', '.join(COLUMNS)}")
    try:
        lines = list(csv.reader(StringIO(text, newline=""), delimiter="\t", quoting=csv.QUOTE_NONE))
    except csv.Error as error:
        raise UserError(f"{path}: cannot be read as tab-separated text ({error}); correct the file") from None
    columns = tuple(lines[0]) if lines else ()
    extra = columns[len(COLUMNS) :]
    if columns[: len(COLUMNS)] != COLUMNS or len(set(extra)) < len(extra) or not set(extra) <= set(OPTIONAL):
        raise UserError(
            f"{path} line 1: the columns must be {', '.join(COLUMNS)}, then optionally {', '.join(OPTIONAL)}, "
            "separated by tabs; correct the line"
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
            f"{source}: has {len(fields)} fields, but the header names {len(columns)} columns; give every row one "
            "field per column, separated by single tabs (empty if not known), and name every optional column "
            f"({', '.join(OPTIONAL)}) in the header"
        )
    drive, device, serial, destructive, note, *rest = (field.strip() for field in fields)
    if not _NAME.fullmatch(drive):
        raise UserError(f"{source}: drive '{drive}' is not a valid name; use lower-case letters, digits and hyphens")
    optional = dict(zip(columns[len(COLUMNS) :], rest, strict=True))
    kind = _kind(optional.get(KIND, ""), source)
    if not kind.device.fullmatch(device):
        raise UserError(
            f"{source}: device '{device}' is not {kind.paths}. "
            + (
                "Give the folder's whole path."
                if kind is FILE
                else "Names such as /dev/sda can change at every boot, so give a path that does not change."
            )
        )
    if not serial:
        raise UserError(f"{source}: '{drive}' has no serial. Enter {kind.pinned_by}; 'drivelab drives' shows it.")
    if destructive not in ("yes", "no"):
        raise UserError(f"{source}: destructive is '{destructive}'; write yes (all its data may be destroyed) or no")
    return SheetRow(
        drive, device, serial, destructive == "yes", note, source,
        _endurance_bytes(optional.get(ENDURANCE, ""), source),
        _over_provisioning(optional.get(OVER_PROVISIONING, ""), source),
        _host(optional.get(HOST, ""), source), optional.get(FIRMWARE) or None,
        _model(optional.get(MODEL, ""), source), kind.name, _members(kind, optional.get(MEMBERS, ""), source),
        _size_bytes(kind, optional.get(SIZE, ""), source),
    )  # fmt: skip


def _kind(text: str, source: str) -> Kind:
    if text and text not in KINDS:
        raise UserError(f"{source}: {KIND} is '{text}'; write {', '.join(KINDS)}, or leave the field empty for a drive")
    return KINDS[text or DRIVE.name]


def _members(kind: Kind, text: str, source: str) -> tuple[str, ...]:
    if "," in text:
        raise UserError(f"{source}: {MEMBERS} is '{text}'; separate the serial numbers by spaces, not by commas")
    members = tuple(sorted(set(text.split())))
    if kind.has_members and not members:
        raise UserError(
            f"{source}: a {kind.name} needs {MEMBERS}: the serial numbers of all disks that carry it, separated by "
            "spaces. drivelab writes to no disk that is not named. 'drivelab drives' shows them."
        )
    if members and not kind.has_members:
        raise UserError(f"{source}: a {kind.name} has no {MEMBERS}; leave the field empty")
    return members


def _size_bytes(kind: Kind, text: str, source: str) -> int | None:
    if (kind is FILE) != bool(text):
        raise UserError(
            f"{source}: {SIZE} is '{text}'; "
            + ("give the size of the temporary file, such as 16GiB" if kind is FILE else f"a {kind.name} has its own")
        )
    try:
        return parse_size(text) if text else None
    except UserError as error:
        raise UserError(f"{source}: {SIZE}: {error}") from None


def _endurance_bytes(text: str, source: str) -> float | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or float(text) == 0:
        raise UserError(f"{source}: {ENDURANCE} is '{text}'; write the rated endurance in terabytes, such as 600")
    return 1e12 * float(text)


def _over_provisioning(text: str, source: str) -> float | None:
    if not text:
        return None
    if not _NUMBER.fullmatch(text) or float(text) > _MOST_OVER_PROVISIONING_PCT:
        raise UserError(
            f"{source}: {OVER_PROVISIONING} is '{text}'; write the flash beyond the capacity in percent of the "
            f"capacity, such as 28, at most {_MOST_OVER_PROVISIONING_PCT}"
        )
    return float(text) / 100


def _host(text: str, source: str) -> str | None:
    if text and not HOST_NAME.fullmatch(text):
        raise UserError(
            f"{source}: {HOST} is '{text}'; write the machine's name as uname -n prints it there, or leave the "
            "field empty for the host that runs the study"
        )
    return text or None


def _model(text: str, source: str) -> str | None:
    if text and not _MODEL.fullmatch(text):
        raise UserError(
            f"{source}: {MODEL} is '{text}'; use letters, digits, spaces and . _ + -, at most 61, beginning with a "
            "letter or digit"
        )
    return text or None


def _refuse_twice(seen: dict[tuple[str, str], SheetRow], row: SheetRow) -> None:
    """Raise UserError if an earlier row has this drive, device or serial.

    `seen` maps each value to its row. Folders of one file system share its identifier, and a folder may be measured
    with files of several sizes.
    """
    for column in ("drive",) if row.kind == FILE.name else ("drive", "device", "serial"):
        other = seen.setdefault((column, getattr(row, column)), row)
        if other is not row:
            raise UserError(
                f"{row.source}: {column} '{getattr(row, column)}' is already on line "
                f"{other.source.rsplit(' ', 1)[1]}; give every drive one row"
            )
