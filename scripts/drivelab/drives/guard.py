"""The guard: nothing is written to a drive that it has not approved."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.config.drives_sheet import SheetRow
from drivelab.drives import erasing, holders, identity, node, nvme, signatures, sysfs, tools
from drivelab.drives.lock import Hold, exclusive, is_held
from drivelab.drives.node import Node
from drivelab.drives.openers import Host
from drivelab.errors import UserError
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

PASSING_S = 3.0
"""A program that has a drive open for less than this does not hold it."""
_AGAIN_S = 0.05
_READ_BYTES = 65536
"""A multiple of all logical blocks."""
_NOTHING = "Nothing was written."


@dataclass(frozen=True)
class ApprovedDevice:
    """A block device that the guard has looked at. Only `approve` and `held` make one."""

    device: str
    """/dev node, for people and for programs that only read."""
    name: str
    """Kernel name, such as `nvme0n1`."""
    serial: str
    virtual: str | None


@dataclass(frozen=True)
class HeldDevice(ApprovedDevice):
    """A block device that may be written to: approved, and this process keeps it open. Only `held` makes one."""

    node: Node

    @property
    def path(self) -> str:
        """Path of this very device, for this process and for programs that inherit the node's descriptor."""
        return self.node.path


def approve(row: SheetRow, device: str) -> ApprovedDevice:
    """Return the device of a row of the drive sheet, if a study may destroy its data; `device` is its path now.

    Raises UserError naming the drive, the reason and the remedy: the sheet does not say `destructive: yes`, the serial
    differs or is missing, the firmware is not the one that the sheet pins, or something holds the device (see
    `holder`) for longer than PASSING_S. Writes nothing.
    """
    with _opened(row, device) as opened:
        if not is_held(Path(opened.path)):  # a stage that is running refuses others by its lock
            erasing.wait_until_ended(opened)
        return _approve(row, opened, own_hold=False)


@contextmanager
def held(row: SheetRow, device: str) -> Iterator[tuple[HeldDevice, Hold]]:
    """Approve a device as `approve` does, and hold it with flock and O_EXCL until the end.

    The decision and everything after it are about one open device. It is held before it is looked at, and number,
    attachment and serial are compared once more at the end, because the drive may have been exchanged in between.
    """
    with (
        _opened(row, device) as opened,
        exclusive(Path(opened.path), row.drive, label=opened.device),
    ):
        erasing.wait_until_ended(opened)
        _refuse_other(row, opened)
        hold = _hold(row, opened)
        try:
            drive = HeldDevice(**vars(_approve(row, opened, own_hold=True)), node=opened)
            _refuse_changed(row, drive)
            yield drive, hold
        finally:
            hold.close()


def confirm(row: SheetRow, drive: HeldDevice) -> None:
    """Repeat the approval of a drive; raises UserError if anything has changed or something holds the drive.

    For a drive that this process has open, but does not hold with O_EXCL at the moment.
    """
    _refuse_unlisted(row)
    _refuse_changed(row, drive)
    _approve(row, drive.node, own_hold=False)


def _hold(row: SheetRow, opened: Node) -> Hold:
    """Take hold with O_EXCL; others may have the device open for PASSING_S."""
    deadline_s = time.monotonic() + PASSING_S
    while True:
        try:
            return Hold(opened.path, row.drive, opened.device)
        except UserError:
            if time.monotonic() < deadline_s:
                time.sleep(_AGAIN_S)
                continue
            _approve(row, opened, own_hold=False)  # says who holds it
            raise


@contextmanager
def _opened(row: SheetRow, device: str) -> Iterator[Node]:
    _refuse_unlisted(row)
    where = f"{row.source}: drive '{row.drive}'"
    with ExitStack() as stack:
        try:
            opened = stack.enter_context(node.opened(device))
        except OSError as error:
            raise UserError(
                f"{where} is not attached: there is no block device {device} ({error.strerror or error}). "
                "Check the cable and the path."
            ) from None
        if identity.is_ambiguous(device, opened.name):
            raise UserError(
                f"{where}: {device} may lead to any of several namespaces, which share the serial number. {_NOTHING} "
                f"Enter the path that ends in the namespace's number, such as "
                f"{device}_{nvme.namespace_id(opened.name)}."
            )
        yield opened


def _refuse_unlisted(row: SheetRow) -> None:
    if not row.destructive:
        raise UserError(
            f"{row.source}: drive '{row.drive}' has destructive: no; enter yes if all its data may be destroyed. "
            f"{_NOTHING}"
        )


def _approve(row: SheetRow, opened: Node, *, own_hold: bool) -> ApprovedDevice:
    where = f"{row.source}: drive '{row.drive}' at {opened.device}"
    serial = _refuse_other(row, opened)
    if (words := _silence(opened)) is not None:
        raise UserError(f"{where} cannot be read ({words}). {_NOTHING} Check the cable, and look at dmesg.")
    reason = lasting_holder(opened.path, opened.name, own_hold=own_hold)
    if reason is not None:
        raise UserError(f"{where} may not be used: {reason}; release it first. {_NOTHING}")
    return ApprovedDevice(opened.device, opened.name, serial, row.virtual)


def _silence(opened: Node) -> str | None:
    """Return why a drive cannot be read, in words; None if it answers.

    `dd` reads past the page cache: with pages that wait for a hanging drive, this process could not close it again.
    """
    answer = tools.run("dd", f"if={opened.path}", "of=/dev/null", "iflag=direct", f"bs={_READ_BYTES}", "count=1")
    return None if answer.status == 0 else answer.words


def _refuse_other(row: SheetRow, opened: Node) -> str:
    """Return the serial number; raises UserError unless it, and the firmware, are those of the sheet."""
    where = f"{row.source}: drive '{row.drive}'"
    serial = actual_serial(opened.device, opened.name)
    if serial is None:
        raise UserError(
            f"{where}: the device at {opened.device} has no serial number, so drivelab cannot know whether it is the "
            f"drive of the sheet. A device without one cannot be tested. {_NOTHING}"
        )
    if serial != row.serial:
        raise UserError(
            f"{where} has serial {serial} at {opened.device}, the sheet says {row.serial}. {_NOTHING} "
            "Run drivelab drives to see what is attached."
        )
    _refuse_firmware(row, opened)
    return serial


def _refuse_changed(row: SheetRow, drive: HeldDevice) -> None:
    """Raise UserError when the open device has gone, is attached again, or has another serial number."""
    where = f"{row.source}: drive '{row.drive}'"
    try:
        now = node.of_descriptor(drive.node.descriptor, drive.device)
    except OSError as error:
        raise UserError(
            f"{where} was detached after the guard had opened it ({error}). Nothing was written since. Attach the "
            "drive and run again."
        ) from None
    if now != drive.node or actual_serial(now.device, now.name) != drive.serial:
        raise UserError(
            f"{where} at {drive.device} was exchanged or attached again after the guard had opened it. Nothing was "
            "written since. Run 'drivelab drives' to see what is attached, then run again."
        )


def _refuse_firmware(row: SheetRow, opened: Node) -> None:
    if row.firmware is not None and (firmware := actual_firmware(opened.device, opened.name)) != row.firmware:
        raise UserError(
            f"{row.source}: drive '{row.drive}' has {f'firmware {firmware}' if firmware else 'an unknown firmware'}, "
            f"the sheet pins it to {row.firmware}. {_NOTHING} To measure the drive with its present firmware, change "
            "'firmware' in the sheet."
        )


def lasting_holder(device: str, name: str, *, own_hold: bool = False) -> str | None:
    """Return what `holder` says, but None as soon as nothing holds the device, for PASSING_S.

    Programs open drives in passing: to look at what is on them, or for a loop device that is free (losetup).
    """
    deadline_s = time.monotonic() + PASSING_S
    while (reason := holder(device, name, own_hold=own_hold)) is not None and time.monotonic() < deadline_s:
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
    firmware: str | None = identity.describe(name)["firmware"]
    return firmware


def holder(device: str, name: str, host: Host = Host(), *, own_hold: bool = False) -> str | None:  # noqa: B008 - an immutable value
    """Return why a device may not be written to, in words, or None.

    No drive at all (a partition, a mapping), the system's disk, mounts, swap, holders (device mapper, md, bcache),
    btrfs, loop devices over it, targets, processes that can write to it, whoever has it open with O_EXCL, each of them
    by any other path to the drive too, and what is a member of an LVM, RAID, ZFS or the like that nobody has assembled.
    `device` is a path by which this process opens it. With `own_hold` this process holds it with O_EXCL itself.
    """
    return (
        holders.holder(name, host)
        or (None if own_hold else _exclusive(device))
        or _twin_in_use(name, host)
        or _membership(name, host)
    )


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
        try:
            with node.opened(f"/dev/{twin}") as opened:
                reason = _exclusive(opened.path) if opened.name == twin else f"/dev/{twin} is a node of {opened.name}"
        except OSError as error:
            reason = f"it cannot be opened ({error.strerror or error})"
        if reason is not None:
            return f"{twin} is the same drive, and {reason}"
    return None


def _membership(name: str, host: Host) -> str | None:
    try:
        written = signatures.read([name, *holders.partitions(name, host)])
    except OSError as error:
        return f"what is written on it cannot be read ({error})"
    for signature in written:
        if signature.membership is not None:
            return (
                f"{signature.node} is {signature.membership} ({signature.kind}), which other drives may need; "
                f"wipefs --all /dev/{signature.node} ends that"
            )
    return None
