"""The block device that is traced, as sysfs shows it."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives.sysfs import SECTOR_BYTES, kernel_name
from drivelab.errors import UserError
from drivelab.trace.capturing.tracer import text

SYS_BLOCK = Path("/sys/class/block")
SETTLE_S = 2.0
"""After the command has ended, its last requests get so long to complete."""


@dataclass(frozen=True)
class Facts:
    """What a device is."""

    capacity_bytes: int
    first_sector: int
    """Where it begins on its disk, of 512 bytes; 0 unless it is a partition."""
    logical_block_bytes: int
    attached: str
    """Changes whenever the device is attached anew (Documentation/ABI/stable/sysfs-block, diskseq)."""


@dataclass(frozen=True)
class Disk:
    """A block device, whole or a partition."""

    name: str
    """Kernel name."""
    sys_block: Path = SYS_BLOCK

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    @property
    def trace(self) -> Path:
        """Where it is enabled for the `blk` tracer."""
        return self.sys_block / self.name / "trace"

    @property
    def number(self) -> int:
        """The device number as the kernel has it in its records: 12 bits of major, 20 of minor (linux/kdev_t.h)."""
        major, _, minor = text(self.sys_block / self.name / "dev").partition(":")
        return int(major or 0) << 20 | int(minor or 0)

    def facts(self) -> Facts:
        """What it is now; all zero when it has gone."""
        path = (self.sys_block / self.name).resolve()
        whole = path.parent if (path / "partition").exists() else path
        return Facts(
            capacity_bytes=_integer(path / "size") * SECTOR_BYTES,
            first_sector=_integer(path / "start"),
            logical_block_bytes=_integer(whole / "queue/logical_block_size"),
            attached=text(whole / "diskseq"),
        )

    def completed(self) -> int:
        """Requests with data that were completed since the device is there (Documentation/block/stat.rst)."""
        fields = [int(field) for field in text(self.sys_block / self.name / "stat").split()]
        return sum(fields[index] for index in (0, 4, 11) if index < len(fields))

    def settle(self) -> None:
        """Wait for the requests in flight: a trace that ends before their completion would lack it."""
        deadline_s = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline_s and any(map(int, text(self.sys_block / self.name / "inflight").split())):
            time.sleep(0.005)

    def carries(self, folder: Path) -> bool:
        """Whether what is written to a folder goes to this device, directly or through what stands on it."""
        own = (self.sys_block / self.name).resolve()
        return own in _below(_source(folder))


def find(device: str) -> Disk:
    """The block device of a path; raises UserError when it is none."""
    try:
        return Disk(kernel_name(device))
    except OSError:
        raise UserError(f"{device}: is no block device; run lsblk to see what there is") from None


def _source(folder: Path) -> Path | None:
    """Folder in sysfs of the device that a folder's file system is on; None for one in memory or on a network."""
    number = folder.stat().st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if link.exists():
        return link.resolve()
    # btrfs has numbers of its own; its mount names a device.
    longest: tuple[int, str] = (0, "")
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        if folder.resolve().is_relative_to(fields[4]):
            longest = max(longest, (len(fields[4]), fields[fields.index("-") + 2]))
    source = Path(os.path.realpath(longest[1] or "/"))
    return (SYS_BLOCK / source.name).resolve() if source.is_block_device() else None


def _below(path: Path | None) -> list[Path]:
    """A device's folder in sysfs and those of all devices that it stands on."""
    if path is None or not path.exists():
        return []
    found = [path]
    for slave in (path / "slaves").glob("*"):
        found += _below(slave.resolve())
    if (path / "partition").exists():
        found += _below(path.parent)
    if backing := text(path / "loop/backing_file"):
        found += _below(_source(Path(backing).parent)) if Path(backing).exists() else []
    return found


def _integer(path: Path) -> int:
    return int(text(path) or 0)
