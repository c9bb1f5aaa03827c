"""Processes by number and start, since numbers come again; the traced command's by session and mark."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK = "DRIVELAB_CAPTURE"
"""Environment variable of the traced command and all that it starts."""
_ATTEMPTS = 100
_PAUSE_S = 0.02


def boot_id() -> str:
    """Changes with every boot, which undoes what a journal tells of."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started(pid: int) -> str:
    """Start of a process in clock ticks since boot (field 22 of proc_pid_stat(5)); raises FileNotFoundError."""
    return _fields(pid)[19]


def alive(pid: int, start: str) -> bool:
    """Whether that process runs; one that has ended and nobody has asked for yet (a zombie) does not."""
    try:
        fields = _fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[19] == start and fields[0] not in ("Z", "X")


def marked(mark: str) -> list[int]:
    """Processes with that value of MARK in their environment; those that have ended have none any more."""
    variable = f"{MARK}={mark}".encode()
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def end_session(session: int, mark: str | None) -> None:
    """Kill what is left of a session, whatever groups it has made, and of what bears the mark."""
    for _ in range(_ATTEMPTS):
        left = set(_of_session(session)) | set(marked(mark) if mark else ())
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _of_session(session: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = _fields(int(path.name))
            if fields[3] == str(session) and fields[0] not in ("Z", "X"):
                found.append(int(path.name))
    return found


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
