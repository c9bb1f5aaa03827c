"""What a replay may write to: a drive that the guard approved, or a loop device or a file that its owner names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives import guard, sysfs
from drivelab.drives.file_holders import file_holder
from drivelab.drives.guard import ApprovedDevice
from drivelab.drives.holders import Host
from drivelab.drives.lock import exclusive
from drivelab.errors import UserError
from drivelab.virtual import manage

_NOTHING = "Nothing was written."


@dataclass(frozen=True)
class Target:
    """Where requests may go. Only this module makes one."""

    path: str
    identity: str
    """By which the engine knows what it opens: `block MAJOR:MINOR DISKSEQ` or `file DEVICE:INODE`."""
    kind: str
    """`drive`, `loop device` or `file`."""
    label: str
    """The drive's name in the sheet, else the path."""
    capacity_bytes: int
    logical_block_bytes: int
    approved: ApprovedDevice | None = None
    """Of a drive."""

    @property
    def device(self) -> str | None:
        """The block device to look at; None for a file."""
        return None if self.kind == "file" else self.path


def of_drive(approved: ApprovedDevice, label: str) -> Target:
    """The target that an approved drive is. The caller holds its lock."""
    return _block(approved.name, "drive", label, approved)


@contextmanager
def named(path: Path, *, destroy: bool) -> Iterator[Target]:
    """A loop device or a regular file of this user's, locked, and a loop device held with O_EXCL.

    Raises UserError, before anything is written, when it is neither, belongs to another user, is in use in any way,
    or nobody said with `destroy` that what it holds may be destroyed.
    """
    try:
        real = path.resolve(strict=True)
        mode = real.stat().st_mode
    except OSError as error:
        raise UserError(
            f"target {path}: cannot be used ({error.strerror}); name a drive of the sheet, a loop device or a file"
        ) from None
    if stat.S_ISBLK(mode):
        _refuse_loop(path, real)
    elif stat.S_ISREG(mode):
        _refuse_file(path, real)
    else:
        raise UserError(f"target {path}: is neither a block device nor a regular file; name another. {_NOTHING}")
    if not destroy:
        raise UserError(f"target {path}: a replay may destroy what it holds; agree to that with --yes. {_NOTHING}")
    with exclusive(real, str(path), hold=stat.S_ISBLK(mode)):
        yield _block(real.name, "loop device", str(path)) if stat.S_ISBLK(mode) else _file(path, real)


def _block(name: str, kind: str, label: str, approved: ApprovedDevice | None = None) -> Target:
    numbers = sysfs.read_text(sysfs.block_dir(name) / "dev")
    sequence = sysfs.read_text(sysfs.block_dir(name) / "diskseq") or "-"
    return Target(
        path=f"/dev/{name}",
        identity=f"block {numbers} {sequence}",
        kind=kind,
        label=label,
        capacity_bytes=sysfs.capacity_bytes(name),
        logical_block_bytes=sysfs.logical_block_bytes(name),
        approved=approved,
    )


def _file(path: Path, real: Path) -> Target:
    """O_DIRECT wants what the file system's device wants; 4096 is right for all of them."""
    found = real.stat()
    return Target(
        path=str(real),
        identity=f"file {found.st_dev}:{found.st_ino}",
        kind="file",
        label=str(path),
        capacity_bytes=found.st_size,
        logical_block_bytes=4096,
    )


def _refuse_loop(path: Path, device: Path) -> None:
    if (record := manage.find_by_device(str(device))) is not None:
        raise UserError(f"target {path}: is virtual drive '{record.name}'; name its row of the drive sheet. {_NOTHING}")
    backing = sysfs.read_text(sysfs.block_dir(device.name) / "loop/backing_file")
    if backing is None:
        raise UserError(
            f"target {path}: is no loop device; enter a real drive in the drive sheet and name it. {_NOTHING}"
        )
    try:
        behind = Path(backing).stat()
    except OSError as error:
        raise UserError(f"target {path}: its file {backing} cannot be seen ({error.strerror}). {_NOTHING}") from None
    if not stat.S_ISREG(behind.st_mode):
        raise UserError(
            f"target {path}: behind it is {backing}, which is no file; a drive is named by its row of the drive sheet. "
            f"{_NOTHING}"
        )
    if behind.st_uid != os.geteuid():
        raise UserError(f"target {path}: its file {backing} belongs to another user; use one of your own. {_NOTHING}")
    if (reason := guard.lasting_holder(str(device), device.name)) is not None:
        raise UserError(f"target {path}: may not be used: {reason}; release it first. {_NOTHING}")


def _refuse_file(path: Path, file: Path, host: Host = Host()) -> None:  # noqa: B008 - an immutable value
    if file.stat().st_uid != os.geteuid():
        raise UserError(f"target {path}: belongs to another user; use a file of your own. {_NOTHING}")
    if not file.stat().st_size:
        raise UserError(f"target {path}: is empty; give it its size with truncate --size=SIZE {path}. {_NOTHING}")
    if (reason := file_holder(file, host)) is not None:
        raise UserError(f"target {path}: may not be used: {reason}; release it first. {_NOTHING}")
