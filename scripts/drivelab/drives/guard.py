"""The guard: drivelab writes only to drives that the guard has approved."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.core.lock import Hold, exclusive, is_held
from drivelab.core.sight import Unseen, advised
from drivelab.drives import (
    composed,
    doubles,
    erasing,
    holders,
    identified,
    identity,
    node,
    nvme,
    signatures,
    sysfs,
    tools,
)
from drivelab.drives.approved import ApprovedDevice, HeldDevice
from drivelab.drives.composed import Subject, is_composed, other_kind
from drivelab.drives.identified import Identity
from drivelab.drives.identifiers import actual_firmware, actual_serial, identifier, same
from drivelab.drives.neighbours import Neighbours
from drivelab.drives.node import Node
from drivelab.drives.openers import Host
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.subject_kinds import DRIVE, KINDS, PARTITION

_AGAIN_S = 0.05
_READ_BYTES = 65536
"""A multiple of all logical blocks."""
_NOTHING = "Nothing was written."


def approve(row: SheetRow, device: str) -> ApprovedDevice:
    """Return the device of a drive sheet row, if a study may destroy its data; `device` is its current path.

    Writes nothing. Raises UserError with drive, reason and remedy if the sheet does not say `destructive: yes`, the
    serial differs or is missing, another attached drive reports it too, the firmware differs from the pinned one, or
    something holds the device (see `holder`) for longer than `lock.PASSING_S`.
    """
    with _opened(row, device) as opened:
        if not is_held(Path(opened.path)):  # a running stage locks other commands out
            erasing.wait_until_ended(opened)
        return _approve(row, opened)


@contextmanager
def held(row: SheetRow, device: str) -> Iterator[tuple[HeldDevice, Hold]]:
    """Approve a device as `approve` does, and hold it with flock and O_EXCL until the context ends.

    The approval and all later steps use one open device. drivelab holds the device before it checks it. Number,
    attachment and identity are compared again after the checks, because the drive may have been swapped meanwhile.

    With a partition, volume or array, all disks below it are locked with flock too, and what is beside it on these
    disks is held with O_EXCL. At the end, the blocks beside a partition are compared with those at the beginning:
    raises UserError if any has changed.
    """
    with ExitStack() as stack:
        opened = stack.enter_context(_opened(row, device))
        stack.enter_context(exclusive(Path(opened.path), row.drive, label=opened.device))
        siblings = composed.lock_below(row, opened.name, stack) if is_composed(row.kind) else []
        erasing.wait_until_ended(opened)
        first = _refuse_other(row, opened)
        hold = _hold(row, opened, lambda: _approve(row, opened))
        stack.callback(hold.close)
        for sibling in siblings:
            stack.callback(_hold(row, sibling, lambda: _approve(row, opened, own_hold=True)).close)
        approved = _approve(row, opened, own_hold=True, own_siblings=True)
        neighbours = Neighbours.of(approved.name) if approved.kind == PARTITION.name else None
        drive = HeldDevice(**{**vars(approved), "identity": first}, node=opened, neighbours=neighbours)
        _refuse_changed(row, drive)
        if neighbours is not None:
            stack.enter_context(neighbours.compared_at_end(row.drive))
        yield drive, hold


def confirm(row: SheetRow, drive: HeldDevice) -> None:
    """Repeat the approval of a drive that this process has open but does not hold with O_EXCL now.

    Raises UserError if the drive has changed or something holds it.
    """
    _refuse_unlisted(row)
    _refuse_changed(row, drive)
    _approve(row, drive.node, own_siblings=True)


def _hold(row: SheetRow, opened: Node, explain: Callable[[], object]) -> Hold:
    """Hold a device with O_EXCL; other programs may have it open for up to `lock.PASSING_S`.

    `explain` raises UserError with the holder, if it finds one.
    """
    deadline_s = time.monotonic() + lock.PASSING_S
    while True:
        try:
            return Hold(opened.path, row.drive, opened.device)
        except UserError:
            if time.monotonic() < deadline_s:
                time.sleep(_AGAIN_S)
                continue
            explain()
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


def _approve(row: SheetRow, opened: Node, *, own_hold: bool = False, own_siblings: bool = False) -> ApprovedDevice:
    """Check everything; with `own_hold` this process holds the device with O_EXCL, with `own_siblings` its siblings."""
    where = f"{row.source}: {row.kind} '{row.drive}' at {opened.device}"
    found = _refuse_other(row, opened)
    refuse_zones(where, opened.name)
    if (problem := _read_problem(opened)) is not None:
        raise UserError(f"{where} cannot be read ({problem}). {_NOTHING} Check the cable and dmesg.")
    if is_composed(row.kind):
        subject = Subject(opened.name)
        reason = lasting(lambda: composed_holder(opened.path, subject, own_hold=own_hold, own_siblings=own_siblings))
    else:
        subject, reason = None, lasting_holder(opened.path, opened.name, own_hold=own_hold)
    if reason is not None:
        raise UserError(f"{where} may not be used: {advised(reason)}. {_NOTHING}")
    disks = () if subject is None else subject.disks
    return ApprovedDevice(
        opened.device, opened.name, row.serial, row.virtual, identity=found, kind=row.kind, disks=disks
    )


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


def _refuse_other(row: SheetRow, opened: Node) -> Identity:
    """Return the identity; raises UserError unless kind, serial, members and firmware are as in the sheet.

    Raises UserError too if another drive has the serial.
    """
    where = f"{row.source}: {row.kind} '{row.drive}'"
    if row.kind != DRIVE.name and (actual := other_kind(row.kind, opened.name)) is not None:
        raise UserError(
            f"{where}: the device at {opened.device} is {actual}. {_NOTHING} Correct the column 'kind', or enter the "
            f"path of the {row.kind}."
        )
    serial = _identity(row.kind, opened)
    if serial is None:
        word = "serial number" if row.kind == DRIVE.name else "identifier"
        raise UserError(
            f"{where}: the device at {opened.device} has no {word}, so drivelab cannot identify it. "
            f"A device without {'a serial number' if row.kind == DRIVE.name else KINDS[row.kind].pinned_by} cannot be "
            f"tested. {_NOTHING}"
        )
    if not same(row.kind, serial, row.serial):
        raise UserError(
            f"{where} has serial {serial} at {opened.device}, the sheet says {row.serial}. {_NOTHING} "
            "Run drivelab drives to see what is attached."
        )
    if is_composed(row.kind) and (reason := Subject(opened.name).wrong_members(row.members)) is not None:
        raise UserError(f"{where}: {reason}. {_NOTHING} 'drivelab drives' shows the members.")
    _refuse_doubles(row, opened)
    _refuse_firmware(row, opened)
    return _identified(row, opened)


def _identity(kind: str, opened: Node) -> str | None:
    return actual_serial(opened.device, opened.name) if kind == DRIVE.name else identifier(kind, opened.name)


def _disks(row: SheetRow, name: str) -> list[tuple[str, str]]:
    """Return kernel name and serial number of each disk below a subject; none of a drive, which is one."""
    disks = () if row.kind == DRIVE.name else Subject(name).disks
    return [(disk, actual_serial(f"/dev/{disk}", disk) or "") for disk in disks]


def _identified(row: SheetRow, opened: Node) -> Identity:
    return identified.read(opened.name, row.serial, _disks(row, opened.name))


def _refuse_doubles(row: SheetRow, opened: Node) -> None:
    """Raise UserError if another attached drive reports the serial number of the drive, or of a disk below."""
    if row.virtual is not None:  # its path is from drivelab's own record
        return
    pinned = [(opened.name, row.serial, row.kind)]
    if is_composed(row.kind):
        pinned = [(disk, serial, DRIVE.name) for disk, serial in _disks(row, opened.name)]
    for one in pinned:
        if (reason := doubles.with_same_serial(*one)) is not None:
            raise UserError(
                f"{row.source}: {row.kind} '{row.drive}': {reason}. A path under /dev/disk/by-id may lead to either, "
                f"so drivelab could destroy the data of the wrong one. {_NOTHING} {doubles.REMEDY}"
            )


def _refuse_changed(row: SheetRow, drive: HeldDevice) -> None:
    """Raise UserError if the open device is gone, was re-attached, or has another identity or other disks."""
    where = f"{row.source}: {row.kind} '{row.drive}'"
    try:
        now = node.of_descriptor(drive.node.descriptor, drive.device)
    except OSError as error:
        raise UserError(
            f"{where} was detached after the guard opened it ({error}). Nothing was written since. Attach the "
            "drive and run the command again."
        ) from None
    serial = _identity(row.kind, now)
    moved = is_composed(row.kind) and Subject(now.name).disks != drive.disks
    changes = "; ".join(drive.identity.changes(_identified(row, now)))
    if now != drive.node or serial is None or not same(row.kind, serial, drive.serial) or moved or changes:
        raise UserError(
            f"{where} at {drive.device} was swapped or re-attached after the guard opened it"
            f"{f' ({changes})' if changes else ''}. Nothing was written since. Run 'drivelab drives' to see what is "
            "attached, then run the command again."
        )


def _refuse_firmware(row: SheetRow, opened: Node) -> None:
    if row.firmware is None:
        return
    names = Subject(opened.name).disks if is_composed(row.kind) else (opened.name,)
    versions = {actual_firmware(f"/dev/{name}", name) for name in names}
    if versions != {row.firmware}:
        known = ", ".join(sorted(version for version in versions if version))
        raise UserError(
            f"{row.source}: drive '{row.drive}' has {f'firmware {known}' if known else 'an unknown firmware'}, "
            f"the sheet pins it to {row.firmware}. {_NOTHING} To measure the drive with its current firmware, change "
            "'firmware' in the sheet."
        )


def lasting_holder(device: str, name: str, *, own_hold: bool = False) -> str | None:
    """Call `holder` for up to `lock.PASSING_S`; return None as soon as nothing holds the device, else the last reason.

    Programs open drives briefly: to read what is on them, or to find a free loop device (losetup).
    """
    return lasting(lambda: holder(device, name, own_hold=own_hold))


def lasting(ask: Callable[[], str | None]) -> str | None:
    """Ask for what holds a device or file for up to `lock.PASSING_S`: a process that was killed ends a little later."""
    deadline_s = time.monotonic() + lock.PASSING_S
    while (reason := ask()) is not None and not isinstance(reason, Unseen) and time.monotonic() < deadline_s:
        time.sleep(_AGAIN_S)
    return reason


def holder(device: str, name: str, host: Host = Host(), *, own_hold: bool = False) -> str | None:  # noqa: B008 - an immutable value
    """Return why a device must not be written to, or None.

    Reasons: it is not a drive (partition, mapping), it is the system disk, a mount, swap, a holder (device mapper, md,
    bcache), btrfs, a loop device over it, a target, a process that can write to it or may be unseen, an open with
    O_EXCL. Each of them also counts through any other path to the drive. The last reason is membership in an LVM, RAID,
    ZFS or similar that is not assembled now. `device` is the path by which this process opens the drive. With
    `own_hold` this process itself holds the drive with O_EXCL.
    """
    return (
        holders.holder(name, host)
        or holders.used_by_own_target(name, host)
        or (None if own_hold else _exclusive(device))
        or _twin_in_use(name, host)
        or signatures.membership([name, *holders.partitions(name, host)])
    )


def composed_holder(device: str, subject: Subject, *, own_hold: bool = False, own_siblings: bool = False) -> str | None:
    """Return why a partition, volume or array must not be written to, or None; see `holder`.

    Everything on its disks counts, except what carries it: the disks themselves, and the mappings and arrays between.
    """
    twins = [twin for disk in subject.disks for twin in holders.twins(disk, subject.host) if twin not in subject.disks]
    return (
        subject.unfit()
        or subject.in_use()
        or (None if own_hold else _exclusive(device))
        or (None if own_siblings else _held_exclusively(subject.holdable(), "is on the same disks"))
        or _held_exclusively(twins, "is the same drive as one of its disks")
        or signatures.membership([subject.name, *holders.partitions(subject.name, subject.host)])
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
    return _held_exclusively(holders.twins(name, host), "is the same drive")


def _held_exclusively(names: Sequence[str], what: str) -> str | None:
    for name in names:
        try:
            with node.opened(f"/dev/{name}") as opened:
                reason = _exclusive(opened.path) if opened.name == name else f"/dev/{name} is a node of {opened.name}"
        except OSError as error:
            reason = f"it cannot be opened ({error.strerror or error})"
        if reason is not None:
            return f"{name} {what}, and {reason}"
    return None
