"""Open what drivelab measures without taking it over: a temporary file in a folder, or any device for reading only."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.drives import identifiers, identity, node, sysfs
from drivelab.drives.composition import kind_of
from drivelab.drives.described import member_of
from drivelab.drives.identifiers import actual_serial
from drivelab.host.stack.stack import class_of, disks, layers
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.file_system import BLOCK_BYTES
from drivelab.plan.subject_kinds import DRIVE, FILE

UNKNOWN = "unknown"
"""Identifier of a device that has none."""
_RESERVE_SHARE, _MOST_RESERVE_BYTES = 0.05, 10 << 30
"""Space that stays free on the file system: a share of it, but not more than the second number."""
_NO_TEMPORARY_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
"""Errors of O_TMPFILE on a file system or kernel without it (open(2))."""


@dataclass(frozen=True)
class Guest:
    """An open file or device. Only this module creates it."""

    label: str
    """The folder or device as the user names it."""
    descriptor: int
    capacity_bytes: int
    logical_block_bytes: int
    folder: Path | None = None
    """The folder of a temporary file; None for a device, which is open for reading only."""
    direct: bool = True
    """Whether I/O bypasses the page cache."""
    name: str | None = None
    """The kernel's name of a device; None for a file."""
    disk: str = ""
    """Kernel name of the only disk below; empty if there are none or several."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Columns of the table `drives`."""

    @property
    def path(self) -> str:
        """Path of exactly this file or device, for this process and for programs that inherit the descriptor."""
        return node.path_of(self.descriptor)

    @property
    def identity(self) -> str:
        """Name of what is open, for the comment in a fio job: `file DEVICE:INODE` or `block MAJOR:MINOR`."""
        about = os.fstat(self.descriptor)
        if self.name is None:
            return f"file {about.st_dev}:{about.st_ino}"
        return f"block {os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"


@contextmanager
def opened(row: SheetRow) -> Iterator[Guest]:
    """Open the subject of a row with the kind `file` or `read-only`; raises UserError if that is not possible."""
    with temporary_file(row) if row.kind == FILE.name else _device(row) as guest:
        yield guest


@contextmanager
def temporary_file(row: SheetRow) -> Iterator[Guest]:
    """Make a file of the row's size in its folder; the kernel removes it when the last process closes it.

    Raises UserError if the folder is on another file system than the row says, or too little space would stay free.
    """
    folder = Path(row.device)
    where = f"{row.source}: '{row.drive}'"
    if (actual := file_system(folder, where)) != row.serial:
        raise UserError(
            f"{where}: the folder {folder} is on file system {actual}, the sheet says {row.serial}. Perhaps the right "
            "file system is not mounted. Mount it, or correct 'serial'."
        )
    size_bytes = row.size_bytes or 0
    if (most := most_bytes(folder)) < size_bytes:
        raise UserError(
            f"{where}: a file of {format_amount(size_bytes)} leaves too little space in {folder}, which has room for "
            f"{format_amount(most)}. Free some space, or choose a smaller size."
        )
    with file_in(folder, size_bytes, where) as opened:
        facts = {"capacity_bytes": size_bytes, "logical_block_bytes": BLOCK_BYTES, "kind": row.kind}
        yield replace(opened, facts={**opened.facts, **facts})


@contextmanager
def file_in(folder: Path, size_bytes: int, where: str) -> Iterator[Guest]:
    """Make a sparse file without a name in a folder; it ends with the context, or with this process."""
    descriptor = nameless(folder, where)
    try:
        os.ftruncate(descriptor, size_bytes)
        direct = has_direct_io(descriptor)
        disk, facts = _below(folder)
        if not direct:
            facts["composition"] += "; page cache not bypassed"
        yield Guest(str(folder), descriptor, size_bytes, BLOCK_BYTES, folder, direct, disk=disk, facts=facts)
    finally:
        os.close(descriptor)


def nameless(folder: Path, where: str) -> int:
    """Return the descriptor of a new file without a name; raises UserError that begins with `where`.

    Where the file system has no such files, the file loses its name right after it is made.
    """
    try:
        return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NO_TEMPORARY_FILES:
            raise _no_file(folder, where, error) from None
    path = folder / f".drivelab-{os.getpid()}.tmp"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _no_file(folder, where, error) from None
    path.unlink()
    return descriptor


def _no_file(folder: Path, where: str, error: OSError) -> UserError:
    place = where if where == str(folder) else f"{where}: {folder}"
    return UserError(f"{place}: no file can be made here ({error.strerror}); name another folder")


def has_direct_io(descriptor: int) -> bool:
    """Return whether I/O on an open file can bypass the page cache."""
    try:
        os.close(os.open(node.path_of(descriptor), os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def most_bytes(folder: Path) -> int:
    """Return the size of the largest file that leaves enough space in a folder, also for synchronous appends."""
    return room_bytes(folder) // 2


def room_bytes(folder: Path) -> int:
    """Return how much may be written to a folder, so that enough space stays free for others."""
    about = os.statvfs(folder)
    reserve_bytes = min(int(_RESERVE_SHARE * about.f_blocks * about.f_frsize), _MOST_RESERVE_BYTES)
    return max(about.f_bavail * about.f_frsize - reserve_bytes, 0)


def file_system(folder: Path, where: str) -> str:
    """Return the identifier of a folder's file system: its UUID where udev knows it, else statvfs(3)'s f_fsid."""
    try:
        about = folder.stat()
        kernel_id = os.statvfs(folder).f_fsid
    except OSError as error:
        raise UserError(f"{where}: the folder {folder} cannot be used ({error.strerror}); name another") from None
    if not stat.S_ISDIR(about.st_mode):
        raise UserError(f"{where}: {folder} is not a folder; name a folder or a block device")
    for link in Path("/dev/disk/by-uuid").glob("*"):
        try:
            if link.stat().st_rdev == about.st_dev:
                return link.name
        except OSError:
            continue
    return f"fsid-{kernel_id:x}"


@contextmanager
def _device(row: SheetRow) -> Iterator[Guest]:
    where = f"{row.source}: '{row.drive}'"
    with ExitStack() as stack:
        try:
            device = stack.enter_context(node.opened(row.device))
        except OSError as error:
            raise UserError(
                f"{where}: the device {row.device} cannot be read ({error.strerror or error}). Run as root or as a "
                "user who may read it, or name a folder on it."
            ) from None
        if (actual := identifier(device.name)) != row.serial:
            raise UserError(
                f"{where}: {row.device} is {actual}, the sheet says {row.serial}. Run 'drivelab drives' to see what is "
                "attached."
            )
        size, block = sysfs.capacity_bytes(device.name), sysfs.logical_block_bytes(device.name)
        disk, facts = _below(Path(device.device))
        yield Guest(
            row.device, device.descriptor, size, block, name=device.name, disk=disk or device.name,
            facts={**facts, "capacity_bytes": size, "logical_block_bytes": block, "kind": row.kind},
        )  # fmt: skip


def _below(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the kernel name of the only disk below a place, or an empty text, and the facts for table `drives`."""
    below = layers(path)
    names = disks(below)
    disk = names[0] if len(names) == 1 else ""
    facts = identity.describe(disk) if disk else {"model": class_of(below)}
    members = [member_of(name) for name in names]
    facts.pop("serial", None)  # of the disk; the place itself is pinned by another identifier
    return disk, {**facts, "composition": "; ".join(layer.words for layer in below), "members": members}


def identifier(name: str) -> str:
    """Return what identifies a block device: serial number, world-wide name, UUID, or the file of a loop device."""
    kind = kind_of(name)
    own = actual_serial(f"/dev/{name}", name) if kind == DRIVE.name else identifiers.identifier(kind, name)
    files = ("wwid", "device/wwid", "loop/backing_file")
    known = (own, *(sysfs.read_text(sysfs.block_dir(name) / file) for file in files))
    return next((" ".join(text.split()) for text in known if text), UNKNOWN)
