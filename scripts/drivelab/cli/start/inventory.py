"""Add the drives of this host to a drive sheet."""

from __future__ import annotations

import re
from typing import Any

from drivelab.core.units import format_amount
from drivelab.plan.drive_sheet import COLUMNS, HOST, KIND, MEMBERS
from drivelab.plan.hosts import this_host


def verdict(drive: dict[str, Any]) -> str:
    """Return whether a drive may be tested, with the reason why not."""
    return "may be tested" if drive["testable"] else f"not testable: {drive['reason']}"


def sheet_text(drives: list[dict[str, Any]], present: str = "") -> str:
    """Return the drive sheet `present` with the missing drives appended, none of them released for testing.

    Each drive that can be pinned gets a row, each other drive a comment. A column `host` gets this host.
    """
    lines = _lines(present)
    return "\n".join([*lines, *(line for _, line in additions(drives, present))]) + "\n"


def _lines(present: str) -> list[str]:
    return present.splitlines() or ["\t".join(COLUMNS)]


def additions(drives: list[dict[str, Any]], present: str) -> list[tuple[dict[str, Any], str]]:
    """Return each drive that the sheet lacks, with its new line: a row or a comment."""
    lines, additions = _lines(present), []
    columns = lines[0].split("\t")
    where = f" of {this_host()}" if HOST in columns else ""
    fields = [line.split("\t") for line in lines[1:] if not line.startswith("#")]
    names, serials = {row[0] for row in fields}, {row[2] for row in fields if len(row) > 2}
    for drive in drives:
        is_whole, members, about = drive["kind"] == "drive", " ".join(drive["members"]), _note(drive)
        if drive["sheet"] is not None or not (is_whole or drive["testable"]):
            continue
        line = f"# {drive['device']}{where}: {about}"
        if not is_whole and not {KIND, MEMBERS} <= set(columns):
            line += (
                f"; to test it, add the columns {KIND} and {MEMBERS}, and a row with device {drive['pin']}, serial "
                f"{drive['serial']}, {KIND} {drive['kind']}, {MEMBERS} {members}"
            )
        elif is_whole and drive["serial"] in serials:
            line += f"; the serial number {drive['serial']} is listed above already"
        elif drive["pin"] and drive["serial"]:
            row = {"drive": _free_name(drive, names), "device": drive["pin"], "serial": drive["serial"],
                   "destructive": "no", "note": about, HOST: this_host()}  # fmt: skip
            row |= {} if is_whole else {KIND: drive["kind"], MEMBERS: members}
            line = "\t".join(row.get(column, "") for column in columns)
            serials.add(drive["serial"])
        if line not in lines:
            additions.append((drive, line))
    return additions


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
