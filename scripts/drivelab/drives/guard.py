"""The guard: nothing is written to a drive that it has not approved."""

from __future__ import annotations

import errno
import os
import time
from dataclasses import dataclass

from drivelab.config.drives_sheet import SheetRow
from drivelab.drives import holders, identity, signatures, sysfs
from drivelab.drives.holders import Host
from drivelab.errors import UserError
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

PASSING_S = 3.0
"""Whoever has a drive open for less is no holder."""
_AGAIN_S = 0.05


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
    serial is another or missing, the firmware is not the one that the sheet pins, or something holds the device (see
    `holder`) for longer than in passing. Nothing is written.
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
    serial = actual_serial(f"/dev/{name}", name)
    if serial is None:
        raise UserError(
            f"{where}: the device at {device} tells no serial number, so nobody can know whether it is the drive of "
            "the sheet; a device without one cannot be tested. Nothing was written."
        )
    if serial != row.serial:
        raise UserError(
            f"{where} has serial {serial} at {device}, the sheet says {row.serial}. Nothing was written. "
            "Run drivelab drives to see what is attached."
        )
    if row.firmware is not None and (firmware := actual_firmware(f"/dev/{name}", name)) != row.firmware:
        raise UserError(
            f"{where} has firmware {firmware or 'that it does not tell'}, the sheet pins it to {row.firmware}; enter "
            "the other one to measure the drive with it, anew. Nothing was written."
        )
    reason = lasting_holder(f"/dev/{name}", name)
    if reason is not None:
        raise UserError(f"{where} at /dev/{name} may not be used: {reason}; release it first. Nothing was written.")
    return ApprovedDevice(f"/dev/{name}", name, serial, row.virtual)


def lasting_holder(device: str, name: str) -> str | None:
    """As `holder`, but None as soon as nothing holds the device, for PASSING_S.

    Programs open drives in passing: to look at what is on them, or for a loop device that is free (losetup).
    """
    deadline_s = time.monotonic() + PASSING_S
    while (reason := holder(device, name)) is not None and time.monotonic() < deadline_s:
        time.sleep(_AGAIN_S)
    return reason


def actual_serial(device: str, name: str) -> str | None:
    """Serial of the device behind a path: a virtual drive's own record, else the kernel's word."""
    record = manage.find_by_device(device)
    return record.serial if record is not None else sysfs.serial(name)


def actual_firmware(device: str, name: str) -> str | None:
    """Firmware of the device behind a path, as `actual_serial`."""
    record = manage.find_by_device(device)
    if record is not None:
        return DriveModel.from_mapping(record.name, record.model).firmware
    told: str | None = identity.describe(name)["firmware"]
    return told


def holder(device: str, name: str, host: Host = Host()) -> str | None:  # noqa: B008 - an immutable value
    """Why a device may not be written to, in words, or None.

    No drive at all (a partition, a mapping), the system's disk, mounts, swap, holders (device mapper, md, bcache),
    btrfs, loop devices over it, targets, processes that write to it, whoever has it open with O_EXCL, each of them by
    any other path to the drive too, and what is a member of an LVM, RAID, ZFS or the like that nobody has assembled.
    """
    return holders.holder(name, host) or _exclusive(device) or _twin_in_use(name, host) or _membership(name, host)


def _exclusive(device: str) -> str | None:
    """O_EXCL on a block device fails while the kernel or another process holds it exclusively (open(2))."""
    try:
        os.close(os.open(device, os.O_RDONLY | os.O_EXCL | os.O_CLOEXEC))
    except OSError as error:
        if error.errno == errno.EBUSY:
            return "the kernel or another process holds it exclusively"
        return f"it cannot be opened ({os.strerror(error.errno or 0)})"
    return None


def _twin_in_use(name: str, host: Host) -> str | None:
    for twin in holders.twins(name, host):
        if (reason := _exclusive(f"/dev/{twin}")) is not None:
            return f"{twin} is the same drive, and {reason}"
    return None


def _membership(name: str, host: Host) -> str | None:
    try:
        found = signatures.read([name, *holders.partitions(name, host)])
    except OSError as error:
        return f"what is written on it cannot be read ({error})"
    for signature in found:
        if signature.membership is not None:
            return (
                f"{signature.node} is {signature.membership} ({signature.kind}), which other drives may need; "
                f"wipefs --all /dev/{signature.node} ends that"
            )
    return None
