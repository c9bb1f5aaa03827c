"""Processes by number and start: numbers come again."""

from __future__ import annotations

from pathlib import Path


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


def _fields(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
