"""Add the drives of this host, or of many hosts over ssh or Slurm, to a drive sheet."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.plan.drive_sheet import COLUMNS, HOST, HOST_NAME, KIND, MEMBERS
from drivelab.plan.places import COMMAND, ROOT

VIA = ("ssh", "slurm")
_LONGEST_S = 120
_AT_A_TIME = 16


@dataclass(frozen=True)
class Host:
    """A host of the list, and the project's folder there."""

    name: str
    folder: str


@dataclass(frozen=True)
class Answer:
    """What one host answered: its drives as `drivelab drives --json` prints them, or why there is no answer."""

    host: Host
    drives: tuple[dict[str, Any], ...] = ()
    failure: str = ""


def hosts_in(path: Path) -> list[Host]:
    """Read a list of hosts: a name a line, then the project's folder there if it is not the same as here.

    Empty lines and comments (#) are skipped. Raises UserError for an invalid name, a repeated host, or an empty list.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a list of hosts ({error})") from None
    hosts: list[Host] = []
    for number, line in enumerate(lines, start=1):
        name, _, folder = line.partition("#")[0].strip().partition(" ")
        if not name:
            continue
        if not HOST_NAME.fullmatch(name):
            raise UserError(f"{path} line {number}: '{name}' cannot be the name of a host; write one name a line")
        if name in {host.name for host in hosts}:
            raise UserError(f"{path} line {number}: host '{name}' is listed twice; remove one")
        hosts.append(Host(name, folder.strip() or str(ROOT)))
    if not hosts:
        raise UserError(f"{path}: has no hosts; write one name a line")
    return hosts


def ask(hosts: Sequence[Host], via: str) -> list[Answer]:
    """Ask all hosts for their drives, several at a time; the answers are in the order of `hosts`.

    Raises UserError if the program of `via` is missing.
    """
    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        return list(threads.map(lambda host: _ask(host, via), hosts))


def command(host: Host, via: str) -> list[str]:
    """Return the command that prints the drives of a host; no shell here sees the names."""
    remote = f"cd {shlex.quote(host.folder)} && {COMMAND} drives --json"
    if via == "ssh":
        return ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "--", host.name, remote]
    return [
        "srun",
        "--quiet",
        f"--nodelist={host.name}",
        "--nodes=1",
        "--ntasks=1",
        "--immediate=60",
        "sh",
        "-c",
        remote,
    ]


def _ask(host: Host, via: str) -> Answer:
    try:
        done = programs.run(command(host, via), timeout=_LONGEST_S)
    except FileNotFoundError as error:
        raise UserError(f"{error.filename} is not installed here; install it, or choose another --via") from None
    except subprocess.TimeoutExpired:
        return Answer(host, failure=f"no answer in {_LONGEST_S} s")
    if done.returncode:
        return Answer(host, failure=(done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1])
    try:
        drives = json.loads(done.stdout)
        return Answer(host, tuple({**drive, "host": host.name, "sheet": None} for drive in drives))
    except (ValueError, TypeError):
        return Answer(host, failure="its answer is not the list of 'drivelab drives --json'; update drivelab there")


def with_host_column(sheet: str) -> str:
    """Return a drive sheet with the column `host`, which is empty for the rows that it has."""
    header, *rows = sheet.splitlines()
    if "host" in header.split("\t"):
        return sheet
    return "\n".join([f"{header}\thost", *(row if row.startswith("#") else f"{row}\t" for row in rows), ""])


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
    return present.splitlines() or ["\t".join(COLUMNS)]


def additions(drives: list[dict[str, Any]], present: str) -> list[tuple[dict[str, Any], str]]:
    """Return each drive that the sheet lacks, with its new line: a row or a comment."""
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
