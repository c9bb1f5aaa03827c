"""Change a single setting by writing a file or running a program, and check that the change took effect."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core import programs
from drivelab.drives.sysfs import read_text

_COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Write:
    """Restores a setting by writing `value` to the sysfs file `path`."""

    path: str
    value: str


@dataclass(frozen=True)
class Command:
    """Restores a setting by running a program, without a shell."""

    argv: tuple[str, ...]
    unless_listed_in: str = ""
    """A file; skip the command if a line of this file begins with the command's last argument."""


Undo = Write | Command


def perform(change: Undo) -> str | None:
    """Apply a change and check it; return why it failed, or None. Skip settings already right or gone."""
    return _perform_write(change) if isinstance(change, Write) else _perform_command(change)


def current_value(path: Path) -> str | None:
    """Return the content of a setting's file, or the choice in brackets of a list: `always [madvise] never`.

    None if it cannot be read.
    """
    text = read_text(path)
    choice = re.search(r"\[([^\[\]\s]+)\]", text or "")
    return choice[1] if choice else text


def _perform_write(change: Write) -> str | None:
    path = Path(change.path)
    if not path.exists() or current_value(path) == change.value:
        return None
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)  # never creates a file
        try:
            os.write(descriptor, f"{change.value}\n".encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"{path} does not accept {change.value} ({error.strerror})"
    now = current_value(path)
    return None if now == change.value else f"{path} is {now} after writing {change.value}"


def _perform_command(change: Command) -> str | None:
    listed = (read_text(Path(change.unless_listed_in)) or "").splitlines() if change.unless_listed_in else []
    if any(line.split()[:1] == [change.argv[-1]] for line in listed):
        return None
    try:
        done = programs.run(change.argv, timeout=_COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{' '.join(change.argv)} failed ({error})"
    lines = done.stderr.strip().splitlines()
    return (
        None if done.returncode == 0 else f"{' '.join(change.argv)} failed ({lines[0] if lines else done.returncode})"
    )


def from_mapping(body: Mapping[str, Any]) -> Undo:
    """Rebuild a change from the mapping of dataclasses.asdict."""
    if "argv" in body:
        return Command(tuple(body["argv"]), body["unless_listed_in"])
    return Write(body["path"], body["value"])
