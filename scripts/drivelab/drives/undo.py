"""Single changes of a setting: a file that is written to, or a program that is run; and whether they took effect."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab import parent
from drivelab.drives.sysfs import read_text

_COMMAND_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Write:
    """Puts a setting back by writing `value` to the file `path`, as a file of sysfs takes it."""

    path: str
    value: str


@dataclass(frozen=True)
class Command:
    """Puts a setting back by running a program, without a shell."""

    argv: tuple[str, ...]
    unless_listed_in: str = ""
    """A file; there is nothing to do while a line of it begins with the command's last word."""


Undo = Write | Command


def perform(change: Undo) -> str | None:
    """Write or run, and check; returns why it failed, or None. What is as wanted, or has gone, is left alone."""
    return _perform_write(change) if isinstance(change, Write) else _perform_command(change)


def current_value(path: Path) -> str | None:
    """What a setting's file says; of a list such as `always [madvise] never` the choice in brackets.

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
        return f"{path} does not take {change.value} ({error.strerror})"
    now = current_value(path)
    return None if now == change.value else f"{path} is {now} after writing {change.value}"


def _perform_command(change: Command) -> str | None:
    listed = (read_text(Path(change.unless_listed_in)) or "").splitlines() if change.unless_listed_in else []
    if any(line.split()[:1] == [change.argv[-1]] for line in listed):
        return None
    try:
        done = parent.run(change.argv, timeout=_COMMAND_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{' '.join(change.argv)} failed ({error})"
    words = done.stderr.strip().splitlines()
    return (
        None if done.returncode == 0 else f"{' '.join(change.argv)} failed ({words[0] if words else done.returncode})"
    )


def from_mapping(body: Mapping[str, Any]) -> Undo:
    """What dataclasses.asdict made of it."""
    if "argv" in body:
        return Command(tuple(body["argv"]), body["unless_listed_in"])
    return Write(body["path"], body["value"])
