"""Read a host's state. All settings are read here; tests replace the root folders."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from drivelab.core import programs
from drivelab.drives.sysfs import block_dir, read_text

_STA_UNSYNC = 0x40
_COMM_LENGTH = 15
_PROGRAM_TIMEOUT_S = 20.0


def ask(*argv: str) -> str | None:
    """Return a program's output. Return None if it is not installed, fails or does not answer."""
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = programs.run(argv, timeout=_PROGRAM_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def clock_synchronised() -> bool | None:
    """Return whether the kernel reports a synchronised clock (adjtimex(2)). Return None if unknown."""
    # struct timex begins with the modes (0: only read) and four longs; the status follows. It has at most 208 bytes.
    buffer = (ctypes.c_int * 64)()
    try:
        result = ctypes.CDLL(None).adjtimex(ctypes.byref(buffer))
    except (OSError, AttributeError):
        return None
    status = buffer[5 * ctypes.sizeof(ctypes.c_long) // ctypes.sizeof(ctypes.c_int)]
    return None if result < 0 else not status & _STA_UNSYNC


@dataclass(frozen=True)
class Machine:
    """This host, or a simulated one."""

    sys_root: Path = Path("/sys")
    proc_root: Path = Path("/proc")
    run_root: Path = Path("/run")
    etc_root: Path = Path("/etc")
    privileged: bool = field(default_factory=lambda: os.geteuid() == 0)
    ask: Callable[..., str | None] = ask
    synchronised: Callable[[], bool | None] = clock_synchronised

    @property
    def laptop(self) -> bool:
        """Return whether the host has a battery."""
        return bool(self.batteries())

    def batteries(self) -> list[Path]:
        """Return the host's batteries, not a mouse's (ABI: sysfs-class-power)."""
        return [
            supply
            for supply in sorted((self.sys_root / "class/power_supply").glob("*"))
            if read_text(supply / "type") == "Battery" and read_text(supply / "scope") != "Device"
        ]

    def running(self, names: Iterable[str]) -> list[str] | None:
        """Return which programs run, matched by the kernel's names of 15 characters. Return None without /proc."""
        commands = set()
        directories = list(self.proc_root.glob("[0-9]*"))
        for directory in directories:
            if comm := read_text(directory / "comm"):
                commands.add(comm)
        return sorted(name for name in names if name[:_COMM_LENGTH] in commands) if directories else None

    def kernel_parameters(self) -> list[str] | None:
        text = read_text(self.proc_root / "cmdline")
        return None if text is None else text.partition(" -- ")[0].split()

    def timers(self) -> list[str] | None:
        """Return systemd's active timers; None on a host without systemd."""
        if not (self.run_root / "systemd/system").is_dir():
            return None
        text = self.ask(
            "systemctl", "list-units", "--type=timer", "--state=active", "--plain", "--no-legend", "--no-pager"
        )
        return None if text is None else sorted(line.split()[0] for line in text.splitlines() if line.split())

    def ancestors(self, drive: str) -> list[Path]:
        """Return the drive's resolved device folders, up to the root of the bus."""
        directory = block_dir(drive, self.sys_root)
        starts = [directory]
        # With native multipath the block device is below a virtual subsystem that links to its controllers.
        if "nvme-subsystem" in directory.parts:
            starts += [link.resolve() for link in sorted((directory / "device").glob("nvme*")) if link.is_symlink()]
        top = self.sys_root.resolve() / "devices"
        chain: list[Path] = []
        for start in starts:
            chain += [path for path in (start, *start.parents) if top in path.parents and path not in chain]
        return chain

    def nvme_controllers(self, drive: str) -> list[str]:
        """Return the kernel names of an NVMe drive's controllers, such as `nvme0`."""
        return [path.name for path in self.ancestors(drive) if re.fullmatch(r"nvme\d+", path.name)]
