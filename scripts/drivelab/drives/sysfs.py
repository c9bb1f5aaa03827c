"""Read block devices from sysfs and proc; every root is a parameter for tests."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from drivelab.core.errors import UserError

UDEV = Path("/run/udev/data")
SECTOR_BYTES = 512
"""Unit of /sys/block/*/size and stat, whatever the logical block (Documentation/block/stat.rst)."""
VIRTUAL_CLOCK = "virtual clock"
"""Used as boot id on the virtual clock, where the drive model counts instead of a kernel."""


@dataclass(frozen=True)
class Wear:
    """Counters that show whether anything wrote to a drive: see `drivelab.drives.seal`."""

    boot_id: str
    diskseq: str
    """Changes whenever a device is re-attached (Documentation/ABI/stable/sysfs-block)."""
    sectors_written: int
    sectors_discarded: int
    lifetime_bytes_written: int | None = None
    """From the drive's own counter, which survives host restarts; None if the drive has none."""
    members: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Counters of each disk below a partition, volume or array, by serial number: `sectors_written` and
    `sectors_discarded` in the partitions that carry it, or in the whole disk; with `_beside` elsewhere on the disk."""
    own_records_bytes: int = 0
    """What the kernel may write to the carrying part of each disk by itself: the records of an array or pool, or a
    rebuild."""


def read_text(path: Path) -> str | None:
    """Return the stripped content of a small file, or None if it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def kernel_name(device: str) -> str:
    """Return the kernel's name for a device node's number, such as `nvme0n1` for /dev/disk/by-id/nvme-….

    Raises OSError if there is no block device.
    """
    return name_of_number(Path(device).stat(), device)


def name_of_number(about: os.stat_result, path: str) -> str:
    """Return the kernel's name of the block device that a node leads to; raises OSError if there is none."""
    if not stat.S_ISBLK(about.st_mode):
        raise OSError(f"{path} is not a block device")
    numbers = f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
    link = Path("/sys/dev/block") / numbers
    if not link.exists():
        raise OSError(f"{path} has the number {numbers}, and the kernel has no such device")
    return link.resolve().name


def block_dir(name: str, sys_root: Path = Path("/sys")) -> Path:
    return (sys_root / "class/block" / name).resolve()


def whole_dir(name: str, sys_root: Path = Path("/sys")) -> Path:
    """Return the folder of a device with its queue and `diskseq`; a partition has those of its drive."""
    directory = block_dir(name, sys_root)
    return directory.parent if (directory / "partition").exists() else directory


def diskseq(name: str, sys_root: Path = Path("/sys")) -> str:
    """Return the number of the attachment; `unknown` before Linux 5.15."""
    return read_text(whole_dir(name, sys_root) / "diskseq") or "unknown"


def capacity_bytes(name: str, sys_root: Path = Path("/sys")) -> int:
    return int(read_text(block_dir(name, sys_root) / "size") or 0) * SECTOR_BYTES


def logical_block_bytes(name: str, sys_root: Path = Path("/sys")) -> int:
    return int(read_text(whole_dir(name, sys_root) / "queue/logical_block_size") or 512)


def has_poll_queues(name: str, sys_root: Path = Path("/sys")) -> bool:
    """Return whether the device can be polled for completions (Documentation/ABI/stable/sysfs-block, io_poll)."""
    return read_text(whole_dir(name, sys_root) / "queue/io_poll") == "1"


def wear(name: str, sys_root: Path = Path("/sys"), proc_root: Path = Path("/proc")) -> Wear:
    """Return the write counters of a device (Documentation/block/stat.rst: field 7 written, 14 discarded sectors).

    Raises UserError if the device is gone, or if the kernel does not count: frozen counters would hide other writes.
    """
    directory = block_dir(name, sys_root)
    fields = (read_text(directory / "stat") or "").split()
    if len(fields) < 7:
        raise UserError(
            f"the drive {name} is gone: the kernel has no counters for it; attach it and run the command again"
        )
    if not _counts(whole_dir(name, sys_root)):
        raise UserError(
            f"the kernel does not count writes to {name}, so drivelab cannot check whether other programs wrote to it. "
            f"Run: echo 1 > /sys/class/block/{whole_dir(name, sys_root).name}/queue/iostats"
        )
    return Wear(
        boot_id=read_text(proc_root / "sys/kernel/random/boot_id") or "unknown",
        diskseq=diskseq(name, sys_root),
        sectors_written=int(fields[6]),
        sectors_discarded=int(fields[13]) if len(fields) > 13 else 0,
    )


def writes(name: str, sys_root: Path = Path("/sys")) -> dict[str, int] | None:
    """Return `written_bytes`, `discarded_bytes` and `read_bytes` since a device was attached, or None without counts.

    The kernel does not count if the device is gone or queue/iostats is 0 (Documentation/ABI/stable/sysfs-block).
    """
    directory = sys_root / "class/block" / name  # not resolved: this is between two cells, and lengthens their gap
    fields = (read_text(directory / "stat") or "").split()
    if len(fields) < 14 or not _counts(directory / ".." if (directory / "partition").exists() else directory):
        return None
    places = {"written_bytes": 6, "discarded_bytes": 13, "read_bytes": 2}
    return {kind: int(fields[place]) * SECTOR_BYTES for kind, place in places.items()}


def _counts(directory: Path) -> bool:
    """Return whether the kernel counts the I/Os of a device (Documentation/ABI/stable/sysfs-block, iostats).

    A mapping counts by itself, and shows 0 before Linux 6.11 (drivers/md/dm.c, dm_io_acct); the disks below count too.
    """
    return (directory / "dm").exists() or read_text(directory / "queue/iostats") != "0"


def serial(name: str, sys_root: Path = Path("/sys"), udev_root: Path = UDEV) -> str | None:
    """Return the serial from sysfs (NVMe, virtio), VPD page 0x80 (SCSI, SAS, SATA), or else the udev database."""
    directory = block_dir(name, sys_root)
    for path in (directory / "device/serial", directory / "serial"):
        if text := read_text(path):
            return text
    try:
        page = (directory / "device/vpd_pg80").read_bytes()
        if text := page[4:].decode("ascii", "replace").strip("\0 "):
            return text
    except OSError:
        pass
    return udev(name, sys_root, udev_root).get("ID_SERIAL_SHORT") or None


def udev(name: str, sys_root: Path = Path("/sys"), udev_root: Path = UDEV) -> dict[str, str]:
    """Return the properties of a device in the udev database."""
    numbers = read_text(block_dir(name, sys_root) / "dev")
    lines = (read_text(udev_root / f"b{numbers}") or "").splitlines()
    return dict(line.removeprefix("E:").split("=", 1) for line in lines if line.startswith("E:") and "=" in line)


def known(path: Path) -> str | None:
    """Read a speed or width; None where the kernel prints `Unknown` or `<unknown>`."""
    text = read_text(path)
    return text if text is not None and text[:1].isdigit() else None


def blocks(name: str, sys_root: Path = Path("/sys")) -> dict[str, int | str]:
    """Return the physical block of a device in bytes, and its LBA format in a word: `512n`, `512e`, `4Kn`, or a size.

    512e: 512 bytes to the host, more on the medium, so smaller or unaligned writes cost a read.
    """
    logical = logical_block_bytes(name, sys_root)
    physical = int(read_text(whole_dir(name, sys_root) / "queue/physical_block_size") or logical)
    small = "512n" if physical == 512 else "512e"
    word = small if logical == 512 else "4Kn" if logical == 4096 else str(logical)
    return {"physical_block_bytes": physical, "lba_format": word}


def describe(name: str, sys_root: Path = Path("/sys")) -> dict[str, str | int | None]:
    """Return model, firmware, capacity, logical block, transport, link and kind of a device; None where unknown."""
    directory = block_dir(name, sys_root)
    device = directory / "device"
    controller = device if (device / "firmware_rev").exists() else device / "device"
    speed = read_text(device / "device/current_link_speed")
    width = read_text(device / "device/current_link_width")
    return {
        "model": read_text(device / "model"),
        "firmware": read_text(controller / "firmware_rev") or read_text(device / "rev"),
        "capacity_bytes": capacity_bytes(name, sys_root),
        "logical_block_bytes": logical_block_bytes(name, sys_root),
        "transport": read_text(device / "transport") or _transport(name, device),
        "link": f"{speed} x{width}" if speed and width else None,
        "write_cache": read_text(whole_dir(name, sys_root) / "queue/write_cache"),
        "scheduler": read_text(whole_dir(name, sys_root) / "queue/scheduler"),
        "rotational": {"0": False, "1": True}.get(read_text(whole_dir(name, sys_root) / "queue/rotational") or ""),
        "zoned": read_text(whole_dir(name, sys_root) / "queue/zoned"),
    }


def _transport(name: str, device: Path) -> str | None:
    if name.startswith("nvme"):
        return "pcie"
    if name.startswith("loop"):
        return "loop"
    path = str(device.resolve())
    for part, transport in (("/ata", "sata"), ("/usb", "usb"), ("/virtio", "virtio"), ("/host", "scsi")):
        if part in path:
            return transport
    return None
