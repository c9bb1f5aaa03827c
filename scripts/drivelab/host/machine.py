"""What a host says of itself: the one place from which settings are read, with every root a parameter for tests."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from drivelab import parent
from drivelab.drives.sysfs import block_dir, read_text

_STA_UNSYNC = 0x40
_COMM_LENGTH = 15
_PROGRAM_TIMEOUT_S = 20.0


def ask(*argv: str) -> str | None:
    """What a program prints; None if it is not installed, fails or does not answer."""
    if shutil.which(argv[0]) is None:
        return None
    try:
        done = parent.run(argv, timeout=_PROGRAM_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def clock_synchronised() -> bool | None:
    """Whether the kernel holds its clock to be synchronised (adjtimex(2)); None if it does not say."""
    # struct timex begins with the modes (0: only read) and four longs; the status follows. It is 208 bytes at the most.
    buffer = (ctypes.c_int * 64)()
    try:
        result = ctypes.CDLL(None).adjtimex(ctypes.byref(buffer))
    except (OSError, AttributeError):
        return None
    status = buffer[5 * ctypes.sizeof(ctypes.c_long) // ctypes.sizeof(ctypes.c_int)]
    return None if result < 0 else not status & _STA_UNSYNC


@dataclass(frozen=True)
class Machine:
    """This host, or a made-up one."""

    sys_root: Path = Path("/sys")
    proc_root: Path = Path("/proc")
    run_root: Path = Path("/run")
    etc_root: Path = Path("/etc")
    privileged: bool = field(default_factory=lambda: os.geteuid() == 0)
    ask: Callable[..., str | None] = ask
    synchronised: Callable[[], bool | None] = clock_synchronised

    @property
    def laptop(self) -> bool:
        """Whether it can run from a battery of its own."""
        return bool(self.batteries())

    def batteries(self) -> list[Path]:
        """Power supplies that are batteries of the host, not of a mouse (Documentation/ABI: sysfs-class-power)."""
        return [
            supply
            for supply in sorted((self.sys_root / "class/power_supply").glob("*"))
            if read_text(supply / "type") == "Battery" and read_text(supply / "scope") != "Device"
        ]

    def running(self, names: Iterable[str]) -> list[str] | None:
        """Those of the programs that run, by the names that the kernel keeps (15 characters); None without /proc."""
        found = set()
        directories = list(self.proc_root.glob("[0-9]*"))
        for directory in directories:
            if comm := read_text(directory / "comm"):
                found.add(comm)
        return sorted(name for name in names if name[:_COMM_LENGTH] in found) if directories else None

    def kernel_parameters(self) -> list[str] | None:
        text = read_text(self.proc_root / "cmdline")
        return None if text is None else text.partition(" -- ")[0].split()

    def timers(self) -> list[str] | None:
        """Active timers of systemd; None where systemd does not run the host."""
        if not (self.run_root / "systemd/system").is_dir():
            return None
        text = self.ask(
            "systemctl", "list-units", "--type=timer", "--state=active", "--plain", "--no-legend", "--no-pager"
        )
        return None if text is None else sorted(line.split()[0] for line in text.splitlines() if line.split())

    def ancestors(self, drive: str) -> list[Path]:
        """The drive's device folders from the block device up to the root of the bus, links resolved."""
        directory = block_dir(drive, self.sys_root)
        starts = [directory]
        # With native multipath the block device hangs below a virtual subsystem that links to its controllers.
        if "nvme-subsystem" in directory.parts:
            starts += [link.resolve() for link in sorted((directory / "device").glob("nvme*")) if link.is_symlink()]
        top = self.sys_root.resolve() / "devices"
        chain: list[Path] = []
        for start in starts:
            chain += [path for path in (start, *start.parents) if top in path.parents and path not in chain]
        return chain

    def nvme_controllers(self, drive: str) -> list[str]:
        """Kernel names of the controllers of an NVMe drive, such as `nvme0`."""
        return [path.name for path in self.ancestors(drive) if re.fullmatch(r"nvme\d+", path.name)]
