"""Collect the drives of many hosts into one sheet, over ssh or Slurm."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core import programs
from drivelab.core.errors import UserError
from drivelab.plan.drive_sheet import HOST_NAME
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
