"""`drivelab drives`: list this host's block devices and whether each may be tested."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from drivelab.cli.start.inventory import additions, sheet_text, verdict
from drivelab.core.errors import UserError
from drivelab.core.files import read_regular, real_path, write_atomic
from drivelab.core.terminal import broken, print_json
from drivelab.core.units import counted, format_amount
from drivelab.plan.drive_sheet import load_sheet
from drivelab.plan.places import ROOT

DEFAULT_SHEET = ROOT / "config/drives.tsv"
_WIDEST = 100
_TOO_LONG = r"^(.{35})..+$"
"""A model of more than 36 characters."""
_INDENT = "    "


def add_parser(commands: Any) -> None:
    """Register `drives`."""
    parser = commands.add_parser("drives", help="list the drives of this host and whether they may be tested")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print all known facts as JSON")
    form.add_argument(
        "--tsv", action="store_true", help="print the drive sheet, with a row added for each drive that it lacks"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the sheet of --tsv to FILE, atomically"
    )
    parser.add_argument("--sheet", type=Path, default=DEFAULT_SHEET, help="the drive sheet (%(default)s)")
    parser.set_defaults(handler=_drives)


def _drives(options: argparse.Namespace) -> int:
    if options.sheet != DEFAULT_SHEET and not (options.tsv or options.output):
        load_sheet(options.sheet)  # a named sheet that is missing or wrong is a mistake, unless one is to be written
    drives = survey(options.sheet)
    if options.json:
        print_json(drives)
    elif options.tsv or options.output:
        _put_sheet(drives, _text(options.sheet), options.output)
    else:
        print(listing(drives), end="")
    return 0


def survey(sheet: Path) -> list[dict[str, Any]]:
    """Return the facts of all drives; `sheet` is the path of the drive sheet."""
    from drivelab.drives import identity
    from drivelab.drives.described import composed_subjects

    rows, names = _rows(sheet), identity.whole_disks()
    composed = composed_subjects(names)
    drives = [_drive(name, rows) for name in names if name not in composed]
    return [*drives, *filter(None, (_composed(name, rows) for name in composed))]


def _rows(sheet: Path) -> dict[str, Any]:
    """Return the rows of the sheet; an unreadable sheet is reported on stderr and counts as empty."""

    if not _text(sheet).strip():
        return {}
    try:
        return load_sheet(sheet)
    except UserError as error:
        print(f"drivelab: {error}", file=sys.stderr)
        return {}


def _text(sheet: Path) -> str:
    """Return the text of the sheet, empty if it is missing or unreadable."""
    try:
        return read_regular(sheet).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return ""


def _put_sheet(drives: list[dict[str, Any]], present: str, output: Path | None) -> None:
    """Print the sheet with the missing drives, or write it and say what was added and what to do next."""
    text = sheet_text(drives, present)
    if output is None:
        print(text, end="")
        return
    write_atomic(output, text)
    added = [drive for drive, line in additions(drives, present) if not line.startswith("#")]
    if added:
        held = sum(not drive["testable"] for drive in added)
        also = f", {held} of which cannot be tested now (see the column 'note')" if held else ""
        remedy = "name the new drives, and set destructive to yes where the data may be destroyed"
        print(f"{output}: written; {counted(len(added), 'drive')} added{also}; {remedy}")
    elif all(drive["sheet"] is not None for drive in drives):
        print(f"{output}: written; no drive added: the sheet has all drives of this host")
    else:
        print(f"{output}: written; no drive added; lines that begin with # give the reasons")


def _drive(name: str, rows: dict[str, Any]) -> dict[str, Any]:
    from drivelab.drives import identity
    from drivelab.virtual import manage
    from drivelab.virtual.model import DriveModel

    facts = identity.describe(name)
    record = manage.find_by_device(f"/dev/{name}")
    pin = facts["by_id"]
    facts["virtual"] = record is not None
    if record is not None:
        facts |= DriveModel.from_mapping(record.name, record.model).describe()
        pin = f"virtual:{record.name}"
    row = next((row for row in rows.values() if row.serial == facts["serial"] and _is(row, name, pin)), None)
    return _entry(name, {"kind": "drive", "members": [], **facts}, pin, why_not(name, facts, pin), row)


def _composed(name: str, rows: dict[str, Any]) -> dict[str, Any] | None:
    from drivelab.drives import described

    facts = described.facts(name)
    if facts is None:
        return None
    pin, reason = facts.pop("pin"), facts.pop("reason")
    row = next((row for row in rows.values() if row.kind == facts["kind"] and _is(row, name, pin)), None)
    return _entry(name, facts, pin, reason, row)


def _entry(name: str, facts: dict[str, Any], pin: str | None, reason: str | None, row: Any) -> dict[str, Any]:
    return {
        "device": f"/dev/{name}",
        "testable": reason is None,
        "reason": reason,
        "sheet": None if row is None else "yes" if row.destructive else "no",
        "sheet_name": row.drive if row is not None else None,
        "rated_endurance_bytes": row.endurance_bytes if row is not None else None,
        "pin": pin,
        **facts,
    }


def _is(row: Any, name: str, pin: str | None) -> bool:
    """Whether a row of the sheet names this device."""
    return bool(row.device == pin or (row.virtual is None and real_path(row.device) == Path(f"/dev/{name}")))


def why_not(name: str, facts: dict[str, Any], pin: str | None) -> str | None:
    """Return why a drive may not be tested; None if nothing holds it and it can be pinned."""
    from drivelab.drives import doubles, guard

    if facts["capacity_bytes"] == 0:
        return "it has no medium"
    try:
        reason = guard.holder(f"/dev/{name}", name)
    except UserError as error:  # a program that the guard needs is missing: whether the drive is held is unknown
        return str(error)
    if reason is not None:
        return reason
    if not facts["serial"]:
        return "the drive reports no serial number, so drivelab cannot identify it reliably"
    if not facts["virtual"] and (reason := doubles.with_same_serial(name, facts["serial"])) is not None:
        return f"{reason}; {doubles.REMEDY_IN_LIST}"
    if pin is None:
        return "it has no path under /dev/disk/by-id; udev creates these paths (package udev)"
    return None


def listing(drives: list[dict[str, Any]]) -> str:
    """Return the drives as text: a line of figures each, then identity and whether it may be tested."""
    if not drives:
        return "this host has no block devices\n"
    rows = [[cell(drive) for cell in _CELLS.values()] for drive in drives]
    used = [column for column in range(len(_CELLS)) if any(row[column] for row in rows)]
    lines: list[str] = []
    for row in [list(_CELLS), *rows]:
        cells = [row[column].ljust(max(len(other[column]) for other in [list(_CELLS), *rows])) for column in used]
        lines.append("  ".join(cells).rstrip())
    blocks = ["\n".join((line, *remarks(drive))) for line, drive in zip(lines[1:], drives, strict=True)]
    return "\n".join((lines[0], *blocks)) + "\n"


def remarks(drive: dict[str, Any]) -> list[str]:
    """Return remarks on a drive, in lines of at most 100 columns or the width of the terminal."""
    width = min(_WIDEST, shutil.get_terminal_size((_WIDEST, 0)).columns)
    known = [f"{key} {drive[key]}" for key in ("serial", "firmware") if drive[key]]
    sentences = [", ".join((*known, _sheet_entry(drive))), verdict(drive)]
    if drive["kind"] != "drive":
        sentences = [drive["composition"], ", ".join((*known, _sheet_entry(drive))), verdict(drive)]
        if drive["pin"] and drive["members"] and drive["sheet"] is None:
            members = " ".join(drive["members"])
            sentences.append(f"for the sheet: device {drive['pin']}, kind {drive['kind']}, members {members}")
    if drive["link"] and drive["link_max"] not in (None, drive["link"]):
        limited = "the drive" if drive["transport"] == "pcie" else "the port"
        sentences.append(f"its link runs at {drive['link']}; {limited} supports {drive['link_max']}")
    if faster := _faster_format(drive["lba_formats"] or []):
        sentences.append(
            f"the drive rates its LBA format as slower than the format with {faster['data_bytes']}-byte blocks"
        )
    return [line for sentence in sentences for line in broken(f"{_INDENT}{sentence}", width)]


def _sheet_entry(drive: dict[str, Any]) -> str:
    if drive["sheet"] is None:
        return "not in the drive sheet"
    return f"in the drive sheet as '{drive['sheet_name']}' (destructive: {drive['sheet']})"


def _faster_format(formats: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return a format without metadata that the drive rates faster than the one in use, or None."""
    from drivelab.drives.nvme import RELATIVE_PERFORMANCE

    def rank(entry: dict[str, Any]) -> int:
        return RELATIVE_PERFORMANCE.index(entry["relative_performance"])

    used = next((entry for entry in formats if entry["in_use"]), None)
    plain = [entry for entry in formats if entry["metadata_bytes"] == 0]
    best = min(plain, key=rank, default=None)
    return best if used is not None and best is not None and rank(best) < rank(used) else None


_CELLS: dict[str, Callable[[dict[str, Any]], str]] = {
    "device": lambda drive: str(drive["device"]).removeprefix("/dev/"),
    "model": lambda drive: re.sub(_TOO_LONG, r"\1…", drive["model"] or ""),
    "size": lambda drive: format_amount(drive["capacity_bytes"]),
    "via": lambda drive: " ".join(filter(None, (drive["transport"], (drive["link"] or "").replace(" PCIe", "")))),
    "blocks": lambda drive: str(drive["lba_format"]),
    "cache": lambda drive: {"write back": "on", "write through": "off"}.get(drive["write_cache"], ""),
    "°C": lambda drive: "" if drive["temperature_c"] is None else f"{drive['temperature_c']:.0f}",
    "used": lambda drive: "" if drive["life_used_pct"] is None else f"{drive['life_used_pct']:.0f} %",
}
