"""Identify block devices by number, because a node in /dev may have another device's number."""

from __future__ import annotations

import ctypes
import fcntl
import os
import stat
import struct
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from drivelab.core.errors import UserError
from drivelab.core.files import real_path
from drivelab.drives.sysfs import diskseq, name_of_number, read_text

_BLKGETDISKSEQ = 0x80081280
"""linux/fs.h: _IOR(0x12, 128, __u64), since Linux 5.15."""
_DESCRIPTORS = "/proc/self/fd/"
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.statx.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
_AT_FDCWD, _AT_STATX_DONT_SYNC, _STATX_TYPE_AND_INODE = -100, 0x4000, 0x1 | 0x100
_STATX = struct.Struct("=28x H 2x Q 88x IIII")
"""stx_mode, stx_ino, stx_rdev and stx_dev (major, minor) of struct statx (linux/stat.h)."""
_KINDS = {stat.S_IFBLK: "b", stat.S_IFCHR: "c"}


@dataclass(frozen=True)
class Node:
    """A block device that this process keeps open.

    While it is open, the kernel does not reuse its number (block/genhd.c, disk_release), and a loop device keeps its
    file (drivers/block/loop.c, loop_clr_fd).
    """

    descriptor: int
    name: str
    """The kernel's name for the number, such as `nvme0n1`, regardless of the name in /dev."""
    numbers: str
    """`major:minor`."""
    diskseq: str
    """Changes whenever a medium is attached (Documentation/ABI/stable/sysfs-block); `unknown` before Linux 5.15."""

    @property
    def path(self) -> str:
        """See `path_of`."""
        return path_of(self.descriptor)

    @property
    def identity(self) -> str:
        """Unique name of the device at one time, which the replay engine compares (native/replay/target.c)."""
        return f"block {self.numbers} {self.diskseq if self.diskseq.isdecimal() else '-'}"

    @property
    def device(self) -> str:
        return f"/dev/{self.name}"


def path_of(descriptor: int) -> str:
    """Return the path by which this process and programs that inherit the descriptor reopen the same file."""
    return f"{_DESCRIPTORS}{descriptor}"


@contextmanager
def opened(path: str) -> Iterator[Node]:
    """Open a block device read-only and keep it open; raises OSError if there is no block device."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        yield of_descriptor(descriptor, path)
    finally:
        os.close(descriptor)


def of_descriptor(descriptor: int, path: str) -> Node:
    """Ask the kernel again about an open block device; raises OSError if it is not a block device or is gone."""
    about = os.fstat(descriptor)
    name = name_of_number(about, path)
    return Node(descriptor, name, f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}", _diskseq(descriptor, name))


def _diskseq(descriptor: int, name: str) -> str:
    value = bytearray(8)
    try:
        fcntl.ioctl(descriptor, _BLKGETDISKSEQ, value)
    except OSError:
        return diskseq(name)
    return str(int.from_bytes(value, "little"))


def inherited(arguments: Iterable[str]) -> list[int]:
    """Return the descriptors that a program must inherit, because its arguments name devices by descriptor."""
    ends = [argument.rpartition(_DESCRIPTORS)[2] for argument in arguments if _DESCRIPTORS in argument]
    return [int(end) for end in ends if end.isdecimal()]


def refuse_stale(path: str) -> None:
    """Raise UserError if a node in /dev has another device's number.

    For programs that open a device by name. A container with its own /dev keeps the nodes of devices that the kernel
    has renumbered.
    """
    real = real_path(path)
    try:
        about = real.stat()
    except OSError:  # the program itself reports it
        return
    kind = "block" if stat.S_ISBLK(about.st_mode) else "char" if stat.S_ISCHR(about.st_mode) else None
    if kind is None or not real.is_relative_to("/dev"):
        return
    numbers = f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
    for line in (read_text(Path("/sys/dev") / kind / numbers / "uevent") or "").splitlines():
        name = line.removeprefix("DEVNAME=")
        if name != line and str(real) != f"/dev/{name}":
            raise UserError(
                f"{real} has the number {numbers}, which is the device {name}. The node is stale, and a command could "
                f"reach the wrong drive. Remove it and run udevadm trigger, or recreate it with mknod."
            )


class File(NamedTuple):
    """What statx(2) reports about a file."""

    kind: str
    """`b` for a block device, `c` for a character device, else empty."""
    numbers: str
    """`major:minor` of a device, else empty."""
    place: tuple[int, int]
    """Device number of the file system, and inode."""


class _Buffer(threading.local):
    """Memory for a struct statx; one for each thread, because a call lets other threads run."""

    def __init__(self) -> None:
        self.memory = bytearray(256)
        self.address = ctypes.addressof((ctypes.c_char * 256).from_buffer(self.memory))


_BUFFER = _Buffer()


def look(path: str) -> File:
    """Return what a file is, following links, without asking a server; raises OSError.

    With AT_STATX_DONT_SYNC a network or FUSE file system answers from memory, so a dead server does not block the call
    (statx(2)).
    """
    buffer = _BUFFER
    if _LIBC.statx(_AT_FDCWD, os.fsencode(path), _AT_STATX_DONT_SYNC, _STATX_TYPE_AND_INODE, buffer.address):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), path)
    mode, inode, major, minor, at_major, at_minor = _STATX.unpack_from(buffer.memory)
    kind = _KINDS.get(mode & 0o170000, "")
    return File(kind, f"{major}:{minor}" if kind else "", (os.makedev(at_major, at_minor), inode))
