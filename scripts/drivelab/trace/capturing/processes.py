"""Identify processes by PID and start time, or by session and mark."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MARK = "DRIVELAB_CAPTURE"
"""Environment variable of the traced command and its descendants."""
_ATTEMPTS = 100
_PAUSE_S = 0.02


def boot_id() -> str:
    """Return the boot ID; a reboot makes journals obsolete."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def started(pid: int) -> str:
    """Return a process's start in clock ticks since boot (proc_pid_stat(5)).

    This is field 22. Raises FileNotFoundError.
    """
    return _fields(pid)[19]


def alive(pid: int, start: str) -> bool:
    """Return whether that process runs; a zombie does not."""
    try:
        fields = _fields(pid)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return fields[19] == start and fields[0] not in ("Z", "X")


def marked(mark: str) -> list[int]:
    """Return the running processes with this value of MARK in their environment."""
    variable = f"{MARK}={mark}".encode()
    pids: list[int] = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if variable in path.read_bytes().split(b"\0"):
                pids.append(int(path.parent.name))
    return pids


def end_session(session: int, mark: str | None) -> None:
    """Kill all processes of a session, in any process group, or with the mark."""
    for _ in range(_ATTEMPTS):
        left = set(_of_session(session)) | set(marked(mark) if mark else ())
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_PAUSE_S)


def _of_session(session: int) -> list[int]:
    pids: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = _fields(int(path.name))
            if fields[3] == str(session) and fields[0] not in ("Z", "X"):
                pids.append(int(path.name))
    return pids


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
