"""The guard: nothing is written to a drive that it has not approved."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from drivelab.config.drives_sheet import SheetRow
from drivelab.drives import sysfs
from drivelab.errors import UserError
from drivelab.virtual import manage


@dataclass(frozen=True)
class ApprovedDevice:
    """A block device that may be written to. Only `approve` makes one."""

    device: str
    """/dev node."""
    name: str
    """Kernel name, such as `nvme0n1`."""
    serial: str
    virtual: str | None


def approve(row: SheetRow, device: str) -> ApprovedDevice:
    """The device of a row of the drive sheet, if all its data may be destroyed; `device` is its path here and now.

    Raises UserError naming the drive, the reason and the remedy: the sheet does not say `destructive: yes`, the
    serial is another, it is a partition, or something holds the device (see `holder`). Nothing is written.
    """
    where = f"{row.source}: drive '{row.drive}'"
    if not row.destructive:
        raise UserError(
            f"{where} has destructive: no; enter yes if all its data may be destroyed. Nothing was written."
        )
    try:
        name = sysfs.kernel_name(device)
    except OSError:
        raise UserError(
            f"{where} is not attached: there is no block device {device}; check the cable and the path"
        ) from None
    if (sysfs.block_dir(name) / "partition").exists():
        raise UserError(f"{where} is the partition {name}; name the whole drive. Nothing was written.")
    serial = actual_serial(f"/dev/{name}", name)
    if serial != row.serial:
        raise UserError(
            f"{where} has serial {serial or 'unknown'} at {device}, the sheet says {row.serial}. "
            "Nothing was written. Run lsblk -o NAME,SERIAL to see what is attached."
        )
    reason = holder(f"/dev/{name}", name)
    if reason is not None:
        raise UserError(f"{where} at /dev/{name} is in use: {reason}; release it first. Nothing was written.")
    return ApprovedDevice(f"/dev/{name}", name, serial, row.virtual)


def actual_serial(device: str, name: str) -> str | None:
    """Serial of the device behind a path: a virtual drive's own record, else the kernel's word."""
    record = manage.find_by_device(device)
    return record.serial if record is not None else sysfs.serial(name)


def holder(device: str, name: str, sys_root: Path = Path("/sys"), proc_root: Path = Path("/proc")) -> str | None:
    """Why a device may not be written to, or None: mounts, swap, holders (dm, md, LVM, ZFS, …), O_EXCL.

    Partitions count as their parent: what is mounted from /dev/sda1 makes /dev/sda in use.
    """
    directory = sysfs.block_dir(name, sys_root)
    nodes = [directory, *(p.parent for p in sorted(directory.glob("*/partition")))]
    mounted = _mounts(proc_root)
    swaps = {Path(line.split()[0]).name for line in (sysfs.read_text(proc_root / "swaps") or "").splitlines()[1:]}
    for node in nodes:
        numbers = sysfs.read_text(node / "dev")
        if numbers in mounted:
            return f"{node.name} is mounted on {mounted[numbers]}"
        if node.name in swaps:
            return f"{node.name} is swap space"
        holders = sorted(p.name for p in (node / "holders").glob("*"))
        if holders:
            return f"{node.name} is held by {', '.join(holders)} (device mapper, md or similar)"
    if loop := _backing_loop(nodes, sys_root):
        return loop
    return _exclusive(device)


def _mounts(proc_root: Path) -> dict[str, str]:
    """Mount point by `major:minor` (proc_pid_mountinfo(5)); btrfs hides its devices there, so sources count too."""
    found: dict[str, str] = {}
    for line in (sysfs.read_text(proc_root / "self/mountinfo") or "").splitlines():
        fields = line.split()
        found[fields[2]] = fields[4]
        source = fields[fields.index("-") + 2]
        if source.startswith("/dev/") and Path(source).exists():
            major, minor = sysfs.device_numbers(source)
            found[f"{major}:{minor}"] = fields[4]
    return found


def _backing_loop(nodes: list[Path], sys_root: Path) -> str | None:
    names = {f"/dev/{node.name}" for node in nodes}
    for backing in sorted((sys_root / "block").glob("loop*/loop/backing_file")):
        if sysfs.read_text(backing) in names:
            return f"{backing.parent.parent.name} is a loop device over it"
    return None


def _exclusive(device: str) -> str | None:
    """O_EXCL on a block device fails while the kernel or another process holds it exclusively (open(2))."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return "the kernel or another process holds it exclusively"
        return f"it cannot be opened ({os.strerror(error.errno or 0)})"
    return None
