"""Add the drives of this host to the text of a drive sheet."""

from __future__ import annotations

import re
from typing import Any

from drivelab.core.units import format_amount


def verdict(drive: dict[str, Any]) -> str:
    """Return whether a drive may be tested, with the reason why not."""
    return "may be tested" if drive["testable"] else f"not testable: {drive['reason']}"


def sheet_text(drives: list[dict[str, Any]], present: str = "") -> str:
    """Return the drive sheet `present` with the missing drives appended, none of them released for testing.

    Each drive that can be pinned gets a row, each other drive a comment.
    """
    lines = _lines(present)
    return "\n".join([*lines, *(line for _, line in additions(drives, present))]) + "\n"


def _lines(present: str) -> list[str]:
    from drivelab.plan.drive_sheet import COLUMNS

    return present.splitlines() or ["\t".join(COLUMNS)]


def additions(drives: list[dict[str, Any]], present: str) -> list[tuple[dict[str, Any], str]]:
    """Return each drive that the sheet lacks, with its new line: a row or a comment."""
    from drivelab.plan.drive_sheet import COLUMNS, HOST

    lines, additions = _lines(present), []
    further = lines[0].split("\t")[len(COLUMNS) :]
    fields = [line.split("\t") for line in lines[1:] if not line.startswith("#")]
    names, serials = {row[0] for row in fields}, {row[2] for row in fields if len(row) > 2}
    for drive in drives:
        note = _note(drive)
        if drive["sheet"] is not None or (drive["kind"] != "drive" and not drive["testable"]):
            continue
        if drive["kind"] != "drive":
            line = _composed_line(drive, lines[0].split("\t"), names, note)
        elif drive["serial"] in serials:
            line = f"# {drive['device']}: {note}; the serial number {drive['serial']} is listed above already"
        elif drive["pin"] and drive["serial"]:
            more = (drive.get("host", "") if column == HOST else "" for column in further)
            line = "\t".join((_free_name(drive, names), drive["pin"], drive["serial"], "no", note, *more))
            serials.add(drive["serial"])
        else:
            line = f"# {drive['device']}{' of ' + drive['host'] if 'host' in drive else ''}: {note}"
        if line not in lines:
            additions.append((drive, line))
    return additions


def _composed_line(drive: dict[str, Any], columns: list[str], names: set[str], note: str) -> str:
    """Return the row of a partition, volume or array; a comment if the sheet lacks the columns `kind` and `members`."""
    from drivelab.plan.drive_sheet import HOST, KIND, MEMBERS

    members = " ".join(drive["members"])
    if not {KIND, MEMBERS} <= set(columns):
        return (
            f"# {drive['device']}: {note}; to test it, add the columns {KIND} and {MEMBERS}, and a row with device "
            f"{drive['pin']}, serial {drive['serial']}, {KIND} {drive['kind']}, {MEMBERS} {members}"
        )
    fields = {"drive": _free_name(drive, names), "device": drive["pin"], "serial": drive["serial"], "destructive": "no",
              "note": note, KIND: drive["kind"], MEMBERS: members, HOST: drive.get("host", "")}  # fmt: skip
    return "\t".join(fields.get(column, "") for column in columns)


def _note(drive: dict[str, Any]) -> str:
    about = f"{drive['model'] or 'unknown model'}, {format_amount(drive['capacity_bytes'])}"
    return " ".join((about if drive["testable"] else f"{about}; {verdict(drive)}").split())


def _free_name(drive: dict[str, Any], taken: set[str]) -> str:
    """Return a name from the model and the end of the serial number, which outlive kernel names."""
    text = f"{(drive['model'] or 'drive')[:28]} {drive['serial'][-4:]}"
    if drive["virtual"]:
        text = drive["pin"].removeprefix("virtual:")
    name = unique = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "drive"
    number = 2
    while unique in taken:
        unique, number = f"{name}-{number}", number + 1
    taken.add(unique)
    return unique
