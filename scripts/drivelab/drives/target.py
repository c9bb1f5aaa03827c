"""Open what a replay may write to: a drive that the guard approved, or a loop device or file of this user."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.lock import Hold, exclusive
from drivelab.core.sight import Unseen, advised
from drivelab.drives import exports, guard, node, openers, sysfs
from drivelab.drives.approved import HeldDevice
from drivelab.drives.holders import unescaped
from drivelab.drives.node import Node
from drivelab.drives.openers import Host, Wanted, is_written, writer
from drivelab.drives.sysfs import read_text
from drivelab.virtual import manage


def file_holder(place: tuple[int, int], host: Host, *, beside: str = "", descriptor: int | None = None) -> str | None:
    """Return why a file must not be written to, or None: swap, loop device, export, or a process that can write.

    `place` is the file system's device number and the inode, because a file may have other paths, also in other mount
    namespaces. The loop device `beside` is ignored.

    With `descriptor`, the kernel says whether anything has the file open for writing, so that an ordinary user needs no
    sight of other users' processes. It cannot say so of a file below a loop device, which has it open itself.
    """
    for line in (read_text(host.proc_root / "swaps") or "").splitlines()[1:]:
        if line.strip() and _place(unescaped(line.split()[0]), host) == place:
            return "it is swap space"
    for file in sorted((host.sys_root / "block").glob("loop*/loop/backing_file")):
        name = file.parent.parent.name
        if name != beside and (reason := _loop_over(name, read_text(file) or "", place, host)) is not None:
            return reason
    exported = exports.use(host, lambda export: _place(export.path, host) == place)
    if exported is not None and not isinstance(exported, Unseen):
        return exported
    written = None if descriptor is None else is_written(descriptor)
    if written is False:
        return None
    reason = writer(Wanted(place=place), host) or exported
    if written and (reason is None or isinstance(reason, Unseen)):
        return "something has it open for writing"
    return reason


def _loop_over(name: str, path: str, place: tuple[int, int], host: Host) -> str | None:
    try:
        behind = host.backing(name)
    except OSError as error:  # no permission to ask the kernel: only the path is known
        by_path = _place(path.removesuffix(" (deleted)"), host)
        if by_path is None:
            return f"{name} may be a loop device over it; only root can check that ({error.strerror}); run as root"
        return f"{name} is a loop device over it" if by_path == place else None
    return f"{name} is a loop device over it" if behind is not None and behind.place == place else None


def _place(path: str, host: Host) -> tuple[int, int] | None:
    try:
        return host.look(path).place
    except OSError:
        return None


_NOTHING = "Nothing was written."


@dataclass(frozen=True)
class Target:
    """Where requests may go. Only this module creates it."""

    path: str
    """For messages, and for the replay engine, which compares the identity of what it opens."""
    descriptor: int
    """Keeps the target open. Programs that compare no identity inherit it and open `own_path`."""
    identity: str
    """What the engine compares after it opens `path`: `block MAJOR:MINOR DISKSEQ` or `file DEVICE:INODE`."""
    kind: str
    """`drive`, `loop device` or `file`."""
    label: str
    """The drive's name in the sheet, else the path."""
    capacity_bytes: int
    logical_block_bytes: int
    approved: HeldDevice | None = None
    """Set for a drive only."""

    @property
    def own_path(self) -> str:
        """Path of exactly this target, even if its name now leads elsewhere."""
        return node.path_of(self.descriptor)

    @property
    def as_comment(self) -> str:
        """The comment above a fio job that names the target by `own_path`."""
        return f"# {self.path} ({self.identity})\n"

    @property
    def device(self) -> str | None:
        """The block device to observe; None for a file."""
        return None if self.kind == "file" else self.path


def of_drive(held: HeldDevice, label: str) -> Target:
    """Return the target for a held drive."""
    return _block(held.node, "drive", label, held)


@contextmanager
def named(path: Path, *, destroy: bool) -> Iterator[Target]:
    """Open and lock a loop device or a regular file of this user; also hold a loop device with O_EXCL.

    The approval applies to the file that is open. Raises UserError, before anything is written, if the path is neither
    a loop device nor a file, belongs to another user or is in use, or if `destroy` is False.
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
            raise UserError(f"target {path}: a replay may destroy its data; confirm with --yes. {_NOTHING}")
        stack.enter_context(exclusive(Path(node.path_of(descriptor)), str(path), label=str(path)))
        if opened is None:
            _refuse_used_file(path, descriptor, about)
            yield _file(path, descriptor, about)
            return
        _refuse_used_loop(path, opened, own_hold=False)
        stack.callback(Hold(opened.path, str(path), opened.device).close)
        _refuse_used_loop(path, opened, own_hold=True)
        if node.of_descriptor(descriptor, str(path)) != opened:
            raise UserError(f"target {path}: was re-attached during the check. {_NOTHING} Run the command again.")
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
    """Return the target for a file; 4096 bytes satisfies O_DIRECT on every underlying device."""
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
    """Raise UserError unless the device is a loop device over a regular file of this user."""
    if (record := manage.find_by_device(opened.device)) is not None:
        raise UserError(f"target {path}: is virtual drive '{record.name}'; use its name in the drive sheet. {_NOTHING}")
    backing = sysfs.read_text(sysfs.block_dir(opened.name) / "loop/backing_file")
    if backing is None:
        raise UserError(
            f"target {path}: is {opened.name}, not a loop device. {_NOTHING} Enter the drive in the drive sheet, and "
            "use its name in the sheet as the target."
        )
    try:
        behind = Path(backing).stat()
        attached = openers.backing(opened.name)
    except OSError as error:
        raise UserError(f"target {path}: cannot read its file {backing} ({error.strerror}). {_NOTHING}") from None
    if attached is None or attached.place != (behind.st_dev, behind.st_ino):
        raise UserError(
            f"target {path}: {backing} was replaced after the loop device was attached. {_NOTHING} Detach the loop "
            "device and attach it again."
        )
    if not stat.S_ISREG(behind.st_mode):
        raise UserError(
            f"target {path}: its backing {backing} is not a regular file. {_NOTHING} For a drive, use its name in the "
            "drive sheet."
        )
    if behind.st_uid != os.geteuid():
        raise UserError(f"target {path}: its file {backing} belongs to another user; use your own file. {_NOTHING}")


def _refuse_used_loop(path: Path, opened: Node, *, own_hold: bool, host: Host = Host()) -> None:  # noqa: B008 - an immutable value
    """Raise UserError if anything uses a loop device, or uses the file behind it in another way."""
    reason = guard.lasting_holder(opened.path, opened.name, own_hold=own_hold)
    if reason is None:
        try:
            behind = host.backing(opened.name)
        except OSError as error:
            reason = f"drivelab cannot ask the kernel for its file ({error.strerror})"
        else:
            held = file_holder(behind.place, host, beside=opened.name) if behind is not None else "it has no file"
            seen = behind is not None and held is not None and not isinstance(held, Unseen)
            reason = f"its file is in use: {held}" if seen else held
    if reason is not None:
        raise UserError(f"target {path}: may not be used: {advised(reason)}. {_NOTHING}")


def _refuse_used_file(path: Path, descriptor: int, about: os.stat_result, host: Host = Host()) -> None:  # noqa: B008 - an immutable value
    place = about.st_dev, about.st_ino
    if (reason := guard.lasting(lambda: file_holder(place, host, descriptor=descriptor))) is not None:
        raise UserError(f"target {path}: may not be used: {advised(reason)}. {_NOTHING}")
