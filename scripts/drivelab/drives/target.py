"""What a replay may write to: a drive that the guard approved, or a loop device or a file that its owner names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives import guard, loops, node, sysfs
from drivelab.drives.file_holders import file_holder
from drivelab.drives.guard import HeldDevice
from drivelab.drives.lock import Hold, exclusive
from drivelab.drives.node import Node
from drivelab.drives.openers import Host
from drivelab.errors import UserError
from drivelab.virtual import manage

_NOTHING = "Nothing was written."


@dataclass(frozen=True)
class Target:
    """Where requests may go. Only this module makes one."""

    path: str
    """For messages, and for the replay engine, which compares the identity of what it opens."""
    descriptor: int
    """This process keeps the target open by it. Programs that compare nothing inherit it, and open `own_path`."""
    identity: str
    """By which the engine knows what it opens: `block MAJOR:MINOR DISKSEQ` or `file DEVICE:INODE`."""
    kind: str
    """`drive`, `loop device` or `file`."""
    label: str
    """The drive's name in the sheet, else the path."""
    capacity_bytes: int
    logical_block_bytes: int
    approved: HeldDevice | None = None
    """Of a drive."""

    @property
    def own_path(self) -> str:
        """Path of this very target, whatever has become of its name."""
        return node.path_of(self.descriptor)

    @property
    def as_comment(self) -> str:
        """What stands before a job of fio's that names the target by `own_path`."""
        return f"# {self.path} ({self.identity})\n"

    @property
    def device(self) -> str | None:
        """The block device to look at; None for a file."""
        return None if self.kind == "file" else self.path


def of_drive(held: HeldDevice, label: str) -> Target:
    """Return the target that a held drive is."""
    return _block(held.node, "drive", label, held)


@contextmanager
def named(path: Path, *, destroy: bool) -> Iterator[Target]:
    """Open a loop device or a regular file of this user's, locked; a loop device is also held with O_EXCL.

    Raises UserError, before anything is written, when it is neither, belongs to another user, is in use in any way,
    or nobody said with `destroy` that what it holds may be destroyed. What is approved is what was opened.
    """
    with ExitStack() as stack:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            stack.callback(os.close, descriptor)
            about = os.fstat(descriptor)
            opened = node.of_descriptor(descriptor, str(path)) if stat.S_ISBLK(about.st_mode) else None
        except OSError as error:
            raise UserError(
                f"target {path}: cannot be used ({error.strerror or error}); name a drive of the sheet, a loop device "
                f"or a file. {_NOTHING}"
            ) from None
        if opened is None and not stat.S_ISREG(about.st_mode):
            raise UserError(f"target {path}: is neither a block device nor a regular file; name another. {_NOTHING}")
        if opened is not None:
            _refuse_other_blocks(path, opened)
        elif about.st_uid != os.geteuid():
            raise UserError(f"target {path}: belongs to another user; use a file of your own. {_NOTHING}")
        elif not about.st_size:
            raise UserError(f"target {path}: is empty; give it its size with truncate --size=SIZE {path}. {_NOTHING}")
        if not destroy:
            raise UserError(f"target {path}: a replay may destroy what it holds; agree to that with --yes. {_NOTHING}")
        stack.enter_context(exclusive(Path(node.path_of(descriptor)), str(path), label=str(path)))
        if opened is None:
            _refuse_used_file(path, about)
            yield _file(path, descriptor, about)
            return
        _refuse_used_loop(path, opened, own_hold=False)
        stack.callback(Hold(opened.path, str(path), opened.device).close)
        _refuse_used_loop(path, opened, own_hold=True)
        if node.of_descriptor(descriptor, str(path)) != opened:
            raise UserError(f"target {path}: was attached again during the check. {_NOTHING} Run again.")
        yield _block(opened, "loop device", str(path))


def _block(opened: Node, kind: str, label: str, held: HeldDevice | None = None) -> Target:
    return Target(
        path=opened.device,
        descriptor=opened.descriptor,
        identity=opened.identity,
        kind=kind,
        label=label,
        capacity_bytes=sysfs.capacity_bytes(opened.name),
        logical_block_bytes=sysfs.logical_block_bytes(opened.name),
        approved=held,
    )


def _file(path: Path, descriptor: int, about: os.stat_result) -> Target:
    """O_DIRECT wants what the file system's device wants; 4096 is right for all of them."""
    return Target(
        path=str(path.resolve()),
        descriptor=descriptor,
        identity=f"file {about.st_dev}:{about.st_ino}",
        kind="file",
        label=str(path),
        capacity_bytes=about.st_size,
        logical_block_bytes=4096,
    )


def _refuse_other_blocks(path: Path, opened: Node) -> None:
    """Raise UserError unless it is a loop device over a regular file of this user's."""
    if (record := manage.find_by_device(opened.device)) is not None:
        raise UserError(f"target {path}: is virtual drive '{record.name}'; name its row of the drive sheet. {_NOTHING}")
    backing = sysfs.read_text(sysfs.block_dir(opened.name) / "loop/backing_file")
    if backing is None:
        raise UserError(
            f"target {path}: is {opened.name}, not a loop device. {_NOTHING} Enter the drive in the drive sheet, and "
            "give its name there as the target."
        )
    try:
        behind = Path(backing).stat()
        place = loops.backing(opened.name)
    except OSError as error:
        raise UserError(f"target {path}: its file {backing} cannot be seen ({error.strerror}). {_NOTHING}") from None
    if place is None or place.place != (behind.st_dev, behind.st_ino):
        raise UserError(
            f"target {path}: {backing} was replaced after the loop device was attached. {_NOTHING} Detach the loop "
            "device and attach it again."
        )
    if not stat.S_ISREG(behind.st_mode):
        raise UserError(
            f"target {path}: behind it is {backing}, which is no file; a drive is named by its row of the drive sheet. "
            f"{_NOTHING}"
        )
    if behind.st_uid != os.geteuid():
        raise UserError(f"target {path}: its file {backing} belongs to another user; use one of your own. {_NOTHING}")


def _refuse_used_loop(path: Path, opened: Node, *, own_hold: bool, host: Host = Host()) -> None:  # noqa: B008 - an immutable value
    """Raise UserError if anything uses a loop device, or the file behind it by another way."""
    reason = guard.lasting_holder(opened.path, opened.name, own_hold=own_hold)
    if reason is None:
        try:
            behind = host.backing(opened.name)
        except OSError as error:
            reason = f"drivelab cannot ask the kernel for its file ({error.strerror})"
        else:
            held = file_holder(behind.place, host, beside=opened.name) if behind is not None else "it has no file"
            reason = f"its file is in use: {held}" if behind is not None and held is not None else held
    if reason is not None:
        raise UserError(f"target {path}: may not be used: {reason}; release it first. {_NOTHING}")


def _refuse_used_file(path: Path, about: os.stat_result, host: Host = Host()) -> None:  # noqa: B008 - an immutable value
    if (reason := file_holder((about.st_dev, about.st_ino), host)) is not None:
        raise UserError(f"target {path}: may not be used: {reason}; release it first. {_NOTHING}")
