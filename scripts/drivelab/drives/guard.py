"""The guard: drivelab writes only to drives that the guard has approved."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.lock import Hold, exclusive, is_held
from drivelab.drives import erasing, holders, identity, node, nvme, signatures, sysfs, tools
from drivelab.drives.node import Node
from drivelab.drives.openers import Host
from drivelab.plan.drive_sheet import SheetRow
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

PASSING_S = 3.0
"""A program that has a drive open for less than this time does not count as a holder."""
_AGAIN_S = 0.05
_READ_BYTES = 65536
"""A multiple of all logical blocks."""
_NOTHING = "Nothing was written."


@dataclass(frozen=True)
class ApprovedDevice:
    """A block device that the guard has checked. Only `approve` and `held` create it."""

    device: str
    """/dev node, for people and for programs that only read."""
    name: str
    """Kernel name, such as `nvme0n1`."""
    serial: str
    virtual: str | None


@dataclass(frozen=True)
class HeldDevice(ApprovedDevice):
    """A writable block device: approved, and kept open by this process. Only `held` creates it."""

    node: Node

    @property
    def path(self) -> str:
        """Path of exactly this device, for this process and for programs that inherit the node's descriptor."""
        return self.node.path


def approve(row: SheetRow, device: str) -> ApprovedDevice:
    """Return the device of a drive sheet row, if a study may destroy its data; `device` is its current path.

    Writes nothing. Raises UserError with drive, reason and remedy if the sheet does not say `destructive: yes`, the
    serial differs or is missing, the firmware differs from the pinned one, or something holds the device (see `holder`)
    for longer than PASSING_S.
    """
    with _opened(row, device) as opened:
        if not is_held(Path(opened.path)):  # a running stage locks other commands out
            erasing.wait_until_ended(opened)
        return _approve(row, opened, own_hold=False)


@contextmanager
def held(row: SheetRow, device: str) -> Iterator[tuple[HeldDevice, Hold]]:
    """Approve a device as `approve` does, and hold it with flock and O_EXCL until the context ends.

    The approval and all later steps use one open device. drivelab holds the device before it checks it. Number,
    attachment and serial are compared again after the checks, because the drive may have been swapped meanwhile.
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
    """Repeat the approval of a drive that this process has open but does not hold with O_EXCL now.

    Raises UserError if the drive has changed or something holds it.
    """
    _refuse_unlisted(row)
    _refuse_changed(row, drive)
    _approve(row, drive.node, own_hold=False)


def _hold(row: SheetRow, opened: Node) -> Hold:
    """Hold the device with O_EXCL; other programs may have it open for up to PASSING_S."""
    deadline_s = time.monotonic() + PASSING_S
    while True:
        try:
            return Hold(opened.path, row.drive, opened.device)
        except UserError:
            if time.monotonic() < deadline_s:
                time.sleep(_AGAIN_S)
                continue
            _approve(row, opened, own_hold=False)  # its error names the holder
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
                f"{where} is not attached: no block device {device} ({error.strerror or error}). "
                "Check the cable and the path."
            ) from None
        if identity.is_ambiguous(device, opened.name):
            raise UserError(
                f"{where}: {device} may lead to any of several namespaces that share the serial number. {_NOTHING} "
                f"Enter the path that ends with the namespace number, such as "
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
    refuse_zones(where, opened.name)
    if (problem := _read_problem(opened)) is not None:
        raise UserError(f"{where} cannot be read ({problem}). {_NOTHING} Check the cable and dmesg.")
    reason = lasting_holder(opened.path, opened.name, own_hold=own_hold)
    if reason is not None:
        raise UserError(f"{where} may not be used: {reason}; release it first. {_NOTHING}")
    return ApprovedDevice(opened.device, opened.name, serial, row.virtual)


def refuse_zones(where: str, name: str, sys_root: Path = Path("/sys")) -> None:
    """Raise UserError for a drive whose zones the host must manage: it refuses writes that are not in order."""
    if sysfs.read_text(sysfs.block_dir(name, sys_root) / "queue/zoned") == "host-managed":
        raise UserError(
            f"{where} is host-managed zoned storage. It refuses random writes, which fills and protocols contain. "
            f"{_NOTHING} List a conventional or a drive-managed drive instead."
        )


def _read_problem(opened: Node) -> str | None:
    """Return why a drive cannot be read, or None if it answers.

    `dd` bypasses the page cache: if pages wait for a hanging drive, this process cannot close the drive again.
    """
    answer = tools.run("dd", f"if={opened.path}", "of=/dev/null", "iflag=direct", f"bs={_READ_BYTES}", "count=1")
    return None if answer.status == 0 else answer.words


def _refuse_other(row: SheetRow, opened: Node) -> str:
    """Return the serial number; raises UserError unless serial and firmware match the sheet."""
    where = f"{row.source}: drive '{row.drive}'"
    serial = actual_serial(opened.device, opened.name)
    if serial is None:
        raise UserError(
            f"{where}: the device at {opened.device} has no serial number, so drivelab cannot identify it. "
            f"A device without a serial number cannot be tested. {_NOTHING}"
        )
    if serial != row.serial:
        raise UserError(
            f"{where} has serial {serial} at {opened.device}, the sheet says {row.serial}. {_NOTHING} "
            "Run drivelab drives to see what is attached."
        )
    _refuse_firmware(row, opened)
    return serial


def _refuse_changed(row: SheetRow, drive: HeldDevice) -> None:
    """Raise UserError if the open device is gone, was re-attached, or has another serial number."""
    where = f"{row.source}: drive '{row.drive}'"
    try:
        now = node.of_descriptor(drive.node.descriptor, drive.device)
    except OSError as error:
        raise UserError(
            f"{where} was detached after the guard opened it ({error}). Nothing was written since. Attach the "
            "drive and run the command again."
        ) from None
    if now != drive.node or actual_serial(now.device, now.name) != drive.serial:
        raise UserError(
            f"{where} at {drive.device} was swapped or re-attached after the guard opened it. Nothing was written "
            "since. Run 'drivelab drives' to see what is attached, then run the command again."
        )


def _refuse_firmware(row: SheetRow, opened: Node) -> None:
    if row.firmware is not None and (firmware := actual_firmware(opened.device, opened.name)) != row.firmware:
        raise UserError(
            f"{row.source}: drive '{row.drive}' has {f'firmware {firmware}' if firmware else 'an unknown firmware'}, "
            f"the sheet pins it to {row.firmware}. {_NOTHING} To measure the drive with its current firmware, change "
            "'firmware' in the sheet."
        )


def lasting_holder(device: str, name: str, *, own_hold: bool = False) -> str | None:
    """Call `holder` for up to PASSING_S; return None as soon as nothing holds the device, else the last reason.

    Programs open drives briefly: to read what is on them, or to find a free loop device (losetup).
    """
    deadline_s = time.monotonic() + PASSING_S
    while (reason := holder(device, name, own_hold=own_hold)) is not None and time.monotonic() < deadline_s:
        time.sleep(_AGAIN_S)
    return reason


def actual_serial(device: str, name: str) -> str | None:
    """Return the serial of the device at a path: from a virtual drive's record, else from the kernel."""
    record = manage.find_by_device(device)
    return record.serial if record is not None else sysfs.serial(name)


def actual_firmware(device: str, name: str) -> str | None:
    """Return the firmware of the device at a path, from the same source as `actual_serial`."""
    record = manage.find_by_device(device)
    if record is not None:
        return DriveModel.from_mapping(record.name, record.model).firmware
    firmware: str | None = identity.describe(name)["firmware"]
    return firmware


def holder(device: str, name: str, host: Host = Host(), *, own_hold: bool = False) -> str | None:  # noqa: B008 - an immutable value
    """Return why a device must not be written to, or None.

    Reasons: it is not a drive (partition, mapping), it is the system disk, a mount, swap, a holder (device mapper, md,
    bcache), btrfs, a loop device over it, a target, a process that can write to it, an open with O_EXCL. Each of them
    also counts through any other path to the drive. The last reason is membership in an LVM, RAID, ZFS or similar that
    is not assembled now. `device` is the path by which this process opens the drive. With `own_hold` this process
    itself holds the drive with O_EXCL.
    """
    return (
        holders.holder(name, host)
        or (None if own_hold else _exclusive(device))
        or _twin_in_use(name, host)
        or _membership(name, host)
    )


def _exclusive(device: str) -> str | None:
    """Try O_EXCL, which fails while the kernel or another process holds the device exclusively (open(2))."""
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
        return f"its signatures cannot be read ({error})"
    for signature in written:
        if signature.membership is not None:
            return (
                f"{signature.node} is {signature.membership} ({signature.kind}), which other drives may need; "
                f"wipefs --all /dev/{signature.node} removes it"
            )
    return None
