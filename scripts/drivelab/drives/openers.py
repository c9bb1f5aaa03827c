"""Find processes that can write to a file because they have it open or mapped."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import signal
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.sight import UNSEEN, Unseen, blindness
from drivelab.drives import node
from drivelab.drives.node import File
from drivelab.drives.sysfs import read_text

_LOOP_GET_STATUS64 = 0x4C05
_INFO_BYTES = 232
"""Size of struct loop_info64 (linux/loop.h), whose first fields are lo_device, lo_inode and lo_rdevice."""


@dataclass(frozen=True)
class Backing:
    """The file behind a loop device, not its path: a file has several paths, and more in other namespaces."""

    place: tuple[int, int]
    """Device number of its file system, and inode."""
    device: str
    """`major:minor` if a block device is behind the loop device; else empty."""


def backing(name: str) -> Backing | None:
    """Return what is behind the loop device `name`, or None if nothing is.

    Raises OSError if this process has no permission to ask, or if /dev has no such device.
    """
    with node.opened(f"/dev/{name}") as opened:
        if opened.name != name:
            raise OSError(errno.ENODEV, f"/dev/{name} is a node of {opened.name}")
        info = bytearray(_INFO_BYTES)
        try:
            fcntl.ioctl(opened.descriptor, _LOOP_GET_STATUS64, info)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise
    device, inode, behind = struct.unpack_from("=QQQ", info)
    return Backing((_decoded(device), inode), "" if not behind else _numbers(_decoded(behind)))


def _decoded(number: int) -> int:
    """Convert the kernel's 32-bit device number (linux/kdev_t.h, new_encode_dev) to that of stat(2)."""
    return os.makedev((number & 0xFFF00) >> 8, (number & 0xFF) | ((number >> 12) & 0xFFF00))


def _numbers(number: int) -> str:
    return f"{os.major(number)}:{os.minor(number)}"


_KCMP = {"x86_64": 312, "aarch64": 272}
"""System call number by architecture."""
_KCMP_FILES = 2
"""linux/kcmp.h"""
_LIBC = ctypes.CDLL(None, use_errno=True)


def share_files(process: int, other: int) -> bool:
    """Return whether two threads share one table of open files (kcmp(2)); False if the kernel does not say."""
    number = _KCMP.get(os.uname().machine)
    return number is not None and _LIBC.syscall(number, process, other, _KCMP_FILES, 0, 0) == 0


@dataclass(frozen=True)
class Host:
    """The kernel's file systems and system calls that drivelab asks; tests replace them."""

    sys_root: Path = Path("/sys")
    proc_root: Path = Path("/proc")
    look: Callable[[str], File] = node.look
    """Returns what a path leads to; raises OSError."""
    backing: Callable[[str], Backing | None] = backing
    """Returns what is behind a loop device; raises OSError if the kernel cannot be asked."""
    share_files: Callable[[int, int], bool] = share_files
    """Returns whether two threads share one table of open files."""


@dataclass(frozen=True)
class Wanted:
    """The file to look for."""

    devices: frozenset[tuple[str, str]] = frozenset()
    """Kind and `major:minor` of devices."""
    place: tuple[int, int] | None = None
    """File system and inode of a regular file."""
    paths: frozenset[str] = frozenset()
    """Compared only where statx(2) fails."""

    def fits(self, file: File) -> bool:
        return (file.kind, file.numbers) in self.devices or file.place == self.place

    def is_named(self, path: str) -> bool:
        return path.removesuffix(" (deleted)") in self.paths


_ENDED = (FileNotFoundError, ProcessLookupError)
"""Errors about a process, thread or descriptor that no longer exists."""


def writer(wanted: Wanted, host: Host) -> str | None:
    """Return a description of another process that can write to a file, or why one may be unseen, or None.

    Compares the open file itself, not its path: a container has its own paths, and a node may be gone.
    """
    own, hidden = str(os.getpid()), None
    for pid in filter(str.isdigit, os.listdir(host.proc_root)):  # noqa: PTH208 - strings are ten times quicker
        if pid == own:
            continue
        try:
            for folder in _tables(f"{host.proc_root}/{pid}", host):
                if (access := _open_for_writing(folder, wanted, host) or _mapped(folder, wanted, host)) is not None:
                    return f"process {pid} ({_command(pid, host)}) has {access}"
        except OSError as error:
            # A process that has just ended gives the same error (fs/proc/base.c, proc_fd_access_allowed). A security
            # module may protect process 1 even from root; it starts services, and uses no drive itself.
            if pid != "1" and (host.proc_root / pid).exists():
                hidden = f"process {pid} ({_command(pid, host)}) cannot be read ({error.strerror})"
    reason = blindness(host.proc_root, lambda path: host.look(path).place[1])
    if reason is None and hidden is not None:
        reason = Unseen(f"the open files of {hidden}, so {UNSEEN}. End that process; in a container, add --privileged")
    return reason


def _command(pid: str, host: Host) -> str:
    return read_text(host.proc_root / pid / "comm") or "unknown"


def is_written(descriptor: int) -> bool | None:
    """Return whether anything has a regular file open for writing, or None if its file system does not tell.

    The kernel grants a read lease only if no process of any user or namespace, no loop device and no target has the
    file open for writing (fcntl(2)). `descriptor` is open for reading only, and belongs to the file's owner or root.
    """
    fcntl.fcntl(descriptor, fcntl.F_SETSIG, signal.SIGURG)  # if one opens it now; by default, SIGIO ends this process
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:  # NFS and FUSE grant no leases
        return None
    fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False


def _tables(process: str, host: Host) -> Iterator[str]:
    """Yield the folders with the open files of a process: its own, and of threads with a separate table.

    A thread has a separate table after unshare(CLONE_FILES), and every thread has one if the first thread has ended.
    """
    yield process
    own = int(process.rpartition("/")[2])
    try:
        threads = os.listdir(f"{process}/task")  # noqa: PTH208
    except _ENDED:
        return
    for thread in threads:
        if int(thread) != own and not host.share_files(own, int(thread)):
            yield f"{process}/task/{thread}"


def _open_for_writing(folder: str, wanted: Wanted, host: Host) -> str | None:
    try:
        descriptors = os.listdir(f"{folder}/fd")  # noqa: PTH208
    except _ENDED:
        return None
    for descriptor in descriptors:
        path = _path_if_wanted(f"{folder}/fd/{descriptor}", wanted, host)
        if path is not None and _writes(Path(f"{folder}/fdinfo/{descriptor}")):
            return f"{path} open for writing"
    return None


def _path_if_wanted(link: str, wanted: Wanted, host: Host) -> str | None:
    """Return the path of an open file; None if it is another file, or was closed meanwhile.

    Raises OSError if this process may not ask. A FUSE file system refuses only statx(2).
    """
    try:
        fits = wanted.fits(host.look(link))
    except OSError:  # closed, or no answer from a server, or of a simulated process in a test
        fits = None
    if fits is False:
        return None
    try:
        path = os.readlink(link)  # noqa: PTH115
    except _ENDED:
        return None
    return path if fits or wanted.is_named(path) else None


def _mapped(folder: str, wanted: Wanted, host: Host) -> str | None:
    """Check mappings, because a shared writable mapping outlives its descriptor (proc_pid_maps(5)).

    Raises OSError if this process may not ask.
    """
    try:
        with open(f"{folder}/maps", encoding="utf-8", errors="replace", newline="\n") as maps:  # noqa: PTH123
            lines = [line for line in maps if _is_shared_and_writable(line)]
    except _ENDED:
        return None
    for line in lines:
        extent, _, _, device, inode, *rest = line.rstrip("\n").split(maxsplit=5)
        path = rest[0] if rest else ""
        major, _, minor = device.partition(":")
        place = (os.makedev(int(major, 16), int(minor, 16)), int(inode))
        file = _mapped_file(folder, extent, path, place, host)
        if wanted.fits(file) or (not file.kind and wanted.is_named(path)):
            return f"{path} mapped for writing"
    return None


def _is_shared_and_writable(line: str) -> bool:
    permissions = line.partition(" ")[2][:4]
    return permissions[1:2] == "w" and permissions[3:] == "s"


def _mapped_file(folder: str, extent: str, path: str, place: tuple[int, int], host: Host) -> File:
    """Return the mapped file; only root may follow map_files, for others the path must lead to the mapped file."""
    for link in (f"{folder}/map_files/{extent}", f"{folder}/root{path}"):
        try:
            file = host.look(link)
        except OSError:
            continue
        if link.endswith(extent) or file.place == place:
            return file
    return File("", "", place)


def _writes(fdinfo: Path) -> bool:
    """Return whether an open file is writable (proc_pid_fdinfo(5): flags are octal)."""
    for line in (read_text(fdinfo) or "").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False
