"""The traced block device, as shown by sysfs."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.drives.sysfs import SECTOR_BYTES, kernel_name
from drivelab.trace.capturing.tracer import text

SYS_BLOCK = Path("/sys/class/block")
SETTLE_S = 2.0
"""Time limit for the last requests to complete after the command ends."""


@dataclass(frozen=True)
class Facts:
    """Facts about a device."""

    capacity_bytes: int
    first_sector: int
    """Start on its disk in units of 512 bytes; 0 unless it is a partition."""
    logical_block_bytes: int
    attached: str
    """Changes each time the device is attached (Documentation/ABI/stable/sysfs-block, diskseq)."""


@dataclass(frozen=True)
class Disk:
    """A whole block device or a partition."""

    name: str
    """Kernel name."""

    @property
    def _sysfs(self) -> Path:
        return SYS_BLOCK / self.name

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"

    @property
    def trace(self) -> Path:
        """Folder that enables the device for the `blk` tracer."""
        return self._sysfs / "trace"

    @property
    def number(self) -> int:
        """The device number in the kernel's records (linux/kdev_t.h). 12 bits are the major number, 20 the minor."""
        major, _, minor = text(self._sysfs / "dev").partition(":")
        return int(major or 0) << 20 | int(minor or 0)

    def facts(self) -> Facts:
        """Return the present facts; all zero if the device is gone."""
        path = self._sysfs.resolve()
        whole = path.parent if (path / "partition").exists() else path
        return Facts(
            capacity_bytes=_integer(path / "size") * SECTOR_BYTES,
            first_sector=_integer(path / "start"),
            logical_block_bytes=_integer(whole / "queue/logical_block_size"),
            attached=text(whole / "diskseq"),
        )

    def completed(self) -> int:
        """Return the number of completed requests with data since the device appeared.

        See Documentation/block/stat.rst.
        """
        fields = [int(field) for field in text(self._sysfs / "stat").split()]
        return sum(fields[index] for index in (0, 4, 11) if index < len(fields))

    def settle(self) -> None:
        """Wait for requests in flight, so that the trace contains their completions."""
        deadline_s = time.monotonic() + SETTLE_S
        while time.monotonic() < deadline_s and any(map(int, text(self._sysfs / "inflight").split())):
            time.sleep(0.005)

    def carries(self, folder: Path) -> bool:
        """Return whether writes to a folder reach this device, directly or through other devices on top of it."""
        from drivelab.host.stack.stack import layers  # the guardian does not need it

        names = {self.name, text(self._sysfs / "dm/name")}
        return any(layer.name in names for layer in layers(folder))


def find(device: str) -> Disk:
    """Return the block device at a path; raise UserError for anything else."""
    try:
        return Disk(kernel_name(device))
    except OSError:
        raise UserError(f"{device}: is not a block device; run lsblk to list them") from None


def _integer(path: Path) -> int:
    return int(text(path) or 0)
