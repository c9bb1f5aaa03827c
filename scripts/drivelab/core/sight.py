"""Say whether this process sees every process of the host, as a guard must that looks for users of a drive."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_INITIAL = {"pid": 0xEFFFFFFC, "user": 0xEFFFFFFD}
"""Inodes of the host's own namespaces in nsfs (include/linux/proc_ns.h, since Linux 3.8)."""
_CAPABILITIES = {19: "SYS_PTRACE", 21: "SYS_ADMIN"}
"""Needed to see the open files of every process (proc_pid_fd(5)) and their mapped files (proc_pid_map_files(5))."""
UNSEEN = "a drive or file in use can look free"


class Unseen(str):
    """A reason not to write: something may use the device, and it cannot be seen. Says what to type instead."""

    __slots__ = ()


def advised(reason: str) -> str:
    """Return a reason with what to do about it."""
    return reason if isinstance(reason, Unseen) else f"{reason}. Release it first"


def _inode(path: str) -> int:
    return Path(path).stat().st_ino


def blindness(proc: Path = Path("/proc"), inode: Callable[[str], int] = _inode) -> Unseen | None:
    """Return why this process does not see every process of the host, or None.

    The mount option hidepid of /proc hides nothing from a process with these capabilities, unless a security module
    protects processes (fs/proc/base.c, has_pid_permissions). It then hides process 1, which every host has.
    """
    for name, remedy in (
        ("pid", "In a container, add --pid=host"),
        ("user", "Run as root; a container too (sudo podman)"),
    ):
        try:
            initial = inode(f"{proc}/self/ns/{name}") == _INITIAL[name]
        except OSError:  # /proc belongs to another PID namespace, which does not have this process
            initial = False
        if not initial:
            words = name.replace("pid", "PID")
            return Unseen(f"drivelab runs in a {words} namespace of its own, so {UNSEEN}. {remedy}")
    if missing := _missing_capabilities(proc):
        options = " ".join(f"--cap-add={name}" for name in missing)
        return Unseen(
            f"drivelab lacks the capability {' and '.join(missing)}, so {UNSEEN}. Run as root; in a container, add "
            f"{options} (or --privileged)"
        )
    if not (proc / "1").exists():
        return Unseen(
            f"{proc} hides processes (mount option hidepid), so {UNSEEN}. Run: mount -o remount,hidepid=0 {proc}"
        )
    return None


def _missing_capabilities(proc: Path) -> list[str]:
    effective = 0
    for line in (proc / "self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            effective = int(line.split()[1], 16)
    return [name for bit, name in _CAPABILITIES.items() if not effective >> bit & 1]
