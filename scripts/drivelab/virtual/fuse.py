"""The kernel interface of a virtual drive: the FUSE protocol for one file, its mount and its loop device.

Sources: include/uapi/linux/fuse.h, protocol 7.38 (older kernels ignore unknown flags); mount(2), umount2(2); loop(4),
losetup(8).
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import re
import stat
import time
from errno import ENOSYS, ERANGE
from pathlib import Path
from struct import Struct

from drivelab.core import programs
from drivelab.core.files import mount_lines

PROTOCOL_MAJOR = 7
PROTOCOL_MINOR = 38
ROOT_INODE = 1
"""The root of the mount: a regular file, the drive."""

FORGET = 2
GETATTR = 3
SETATTR = 4
OPEN = 14
READ = 15
WRITE = 16
STATFS = 17
RELEASE = 18
FSYNC = 20
SETXATTR = 21
GETXATTR = 22
FLUSH = 25
INIT = 26
ACCESS = 34
INTERRUPT = 36
DESTROY = 38
BATCH_FORGET = 42
FALLOCATE = 43

WITHOUT_REPLY = frozenset({FORGET, BATCH_FORGET, INTERRUPT, DESTROY})
"""Requests that get no reply. INTERRUPT needs none: the kernel then waits for the reply to the request itself."""

INIT_BIG_WRITES = 1 << 5
INIT_ASYNC_DIO = 1 << 15
"""Without this flag the kernel waits for each direct I/O in turn: queue depth 1."""
INIT_MAX_PAGES = 1 << 22
INIT_HANDLE_KILLPRIV_V2 = 1 << 28
"""Without this flag the kernel asks for security.capability before every write."""

FOPEN_DIRECT_IO = 1 << 0
FOPEN_NOFLUSH = 1 << 5
FOPEN_PARALLEL_DIRECT_WRITES = 1 << 6

FALLOC_PUNCH_HOLE = 0x02
FALLOC_ZERO_RANGE = 0x10

MAX_BACKGROUND = 1024
"""Requests in flight; the kernel's default of 12 would limit the queue depth."""
MAX_WRITE_BYTES = 1 << 20
PAGE_BYTES = 4096
ATTRIBUTES_VALID_S = 86400
BUFFER_BYTES = MAX_WRITE_BYTES + PAGE_BYTES
"""Size of the longest request, a write with its two headers."""

IN_HEADER = Struct("=IIQQIIII")
"""len, opcode, unique, nodeid, uid, gid, pid, padding"""
OUT_HEADER = Struct("=IiQ")
"""len, negative errno, unique"""
INIT_IN = Struct("=IIII")
"""major, minor, max_readahead, flags"""
INIT_OUT = Struct("=IIIIHHIIHHI28x")
"""major, minor, max_readahead, flags, max_background, congestion_threshold, max_write, time_gran, max_pages, …"""
ATTRIBUTES_OUT = Struct("=QII6Q10I")
"""valid s, ns, dummy; ino, size, blocks, 3 times; 3 ns, mode, nlink, uid, gid, rdev, blksize, flags"""
OPEN_OUT = Struct("=QII")
"""fh, open_flags, padding"""
IO_IN = Struct("=QQI")
"""fh, offset, size: the beginning of read_in and write_in"""
IO_IN_BYTES = 40
WRITE_OUT = Struct("=IiQII")
"""out header, size and padding: a complete reply"""
FALLOCATE_IN = Struct("=QQQII")
"""fh, offset, length, mode, padding"""
XATTR_IN = Struct("=II")
"""size, and padding (get) or flags (set); name and value follow"""
STATFS_OUT = Struct("=5Q10I")
"""blocks, bfree, bavail, files, ffree; bsize, namelen, frsize, padding and spare"""

FILESYSTEM = "fuse.drivelab"
"""Type shown in mountinfo: `fuse` with a subtype."""

_MS_NOSUID_NODEV_NOATIME = 0x2 | 0x4 | 0x400
_MNT_DETACH = 2
_LOOP_CTL_GET_FREE = 0x4C82
_LOOP_MAJOR = 7
_BLKFLSBUF = 0x1261
_BLKRASET = 0x1262
_READ_AHEAD_SECTORS = 256
"""The kernel's default of 128 KiB (VM_READAHEAD_PAGES) in sectors of 512 bytes."""

_libc = ctypes.CDLL(None, use_errno=True)


def mount(target: Path, source: str) -> int:
    """Mount on the regular file `target`; return the non-blocking /dev/fuse descriptor that serves it.

    The mount ends with the last copy of the descriptor. Raises OSError without /dev/fuse or the right to mount.
    """
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    options = f"fd={descriptor},rootmode={stat.S_IFREG | 0o600:o},user_id={os.geteuid()},group_id={os.getegid()}"
    result = _libc.mount(
        source.encode(), bytes(target), FILESYSTEM.encode(), _MS_NOSUID_NODEV_NOATIME, options.encode()
    )
    if result != 0:
        failure = _failure(target)
        os.close(descriptor)
        raise failure
    return descriptor


def _failure(target: Path) -> OSError:
    """Return the error of the last call of the C library."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), str(target))


def unmount(target: Path) -> None:
    """Unmount `target` now, even if it is in use (MNT_DETACH); raises OSError."""
    if _libc.umount2(bytes(target), _MNT_DETACH) != 0:
        raise _failure(target)


def mount_filesystem(kind: str, target: Path) -> None:
    """Mount a kernel file system without a device, such as fusectl, on the directory `target`. Raises OSError."""
    if _libc.mount(kind.encode(), bytes(target), kind.encode(), 0, None) != 0:
        raise _failure(target)


def answer(unique: int, body: bytes = b"") -> bytes:
    """Return a complete successful reply."""
    return OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique) + body


def refusal(unique: int, errno: int) -> bytes:
    """Return a complete reply that fails with `errno` (positive)."""
    return OUT_HEADER.pack(OUT_HEADER.size, -errno, unique)


def file_answer(opcode: int, unique: int, body: memoryview, size_bytes: int) -> bytes:
    """Reply to general requests for a regular file of `size_bytes` owned by root and never cached.

    `body` is the request without its header. Raises OSError if the kernel uses another major protocol version.
    """
    if opcode == INIT:
        return _init_answer(unique, body)
    if opcode in (GETATTR, SETATTR):
        mode = stat.S_IFREG | 0o600
        times = [0] * 6
        fields = (ROOT_INODE, size_bytes, size_bytes // 512, *times, mode, 1, 0, 0, 0, PAGE_BYTES, 0)
        return answer(unique, ATTRIBUTES_OUT.pack(ATTRIBUTES_VALID_S, 0, 0, *fields))
    if opcode == OPEN:
        flags = FOPEN_DIRECT_IO | FOPEN_PARALLEL_DIRECT_WRITES | FOPEN_NOFLUSH
        return answer(unique, OPEN_OUT.pack(0, flags, 0))
    if opcode == STATFS:  # the block size becomes the loop device's discard granularity
        blocks = size_bytes // PAGE_BYTES
        return answer(unique, STATFS_OUT.pack(blocks, 0, 0, 1, 0, PAGE_BYTES, 255, PAGE_BYTES, *[0] * 7))
    if opcode in (RELEASE, FLUSH, ACCESS):
        return answer(unique)
    return refusal(unique, ENOSYS)


def _init_answer(unique: int, body: memoryview) -> bytes:
    major, _, max_readahead, offered = INIT_IN.unpack_from(body)
    if major != PROTOCOL_MAJOR:
        raise OSError(f"the kernel uses FUSE protocol {major}, drivelab supports {PROTOCOL_MAJOR}")
    wanted = INIT_BIG_WRITES | INIT_ASYNC_DIO | INIT_MAX_PAGES | INIT_HANDLE_KILLPRIV_V2
    congestion = MAX_BACKGROUND * 3 // 4
    sizes = (MAX_BACKGROUND, congestion, MAX_WRITE_BYTES, 1, MAX_WRITE_BYTES // PAGE_BYTES, 0, 0)
    return answer(unique, INIT_OUT.pack(PROTOCOL_MAJOR, PROTOCOL_MINOR, max_readahead, wanted & offered, *sizes))


def xattr_answer(unique: int, size: int, value: bytes) -> bytes:
    """Reply to GETXATTR for a caller's buffer of `size` bytes; size 0 asks for the length of `value`."""
    if size == 0:
        return answer(unique, XATTR_IN.pack(len(value), 0))
    return answer(unique, value) if len(value) <= size else refusal(unique, ERANGE)


def mounts() -> list[tuple[Path, int]]:
    """Return the mount points of this file system type and their connection numbers, last mounted first."""
    mounts: list[tuple[Path, int]] = []
    for fields in mount_lines():
        if fields[fields.index("-") + 1] == FILESYSTEM:
            path = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[4])  # proc_pid_mountinfo(5)
            mounts.append((Path(path), int(fields[2].partition(":")[2])))
    return mounts[::-1]


def abort(connection: int) -> None:
    """Fail all requests of a connection and its server's next read; do nothing if the connection is gone.

    Only this ends the wait of a process in uninterruptible sleep (Documentation/filesystems/fuse.rst).
    """
    root = Path("/sys/fs/fuse/connections")
    fusectl = not os.path.ismount(root)
    if fusectl:
        mount_filesystem("fusectl", root)
    try:
        (root / str(connection) / "abort").write_text("1")
    except FileNotFoundError:
        pass
    finally:
        if fusectl:
            unmount(root)


def free_loop_device() -> str:
    """Return a free loop device, created if necessary; raises OSError if none is possible."""
    control = os.open("/dev/loop-control", os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control, _LOOP_CTL_GET_FREE)
    finally:
        os.close(control)
    device = Path(f"/dev/loop{number}")
    if not device.exists():  # a container's /dev does not follow the kernel
        os.mknod(device, stat.S_IFBLK | 0o600, os.makedev(_LOOP_MAJOR, number))
    return str(device)


def attach_loop(file: Path, sector_bytes: int = PAGE_BYTES) -> str:
    """Attach a loop device with direct I/O and this sector size to a file; raises OSError with losetup's message.

    Its read-ahead and I/O scheduler are always the kernel's defaults. Otherwise they would depend on the file, on the
    kernel's version, and on what used the device before, so two virtual drives could differ by them.
    """
    free_loop_device()
    command = ["losetup", "--find", "--show", "--direct-io=on", f"--sector-size={sector_bytes}", str(file)]
    done = programs.run(command)
    if done.returncode != 0:
        raise OSError(f"losetup: {done.stderr.strip()}")
    device = done.stdout.strip()
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _BLKRASET, _READ_AHEAD_SECTORS)
    finally:
        os.close(descriptor)
    with contextlib.suppress(OSError):  # a container may see /sys read-only
        Path(f"/sys/block/{Path(device).name}/queue/scheduler").write_text("none")
    return device


def is_virtual(name: str, sys_root: Path = Path("/sys")) -> bool:
    """Return whether the block device `name` is a virtual drive, by any path and of any user."""
    try:
        file = (sys_root / "class/block" / name / "loop/backing_file").read_text().rstrip("\n")
    except OSError:  # no loop device
        return False
    return any(str(path) == file for path, _ in mounts())


def loop_devices(file: Path) -> list[str]:
    """Return the loop devices over a file, according to the kernel."""
    devices: list[str] = []
    for backing in sorted(Path("/sys/block").glob("loop*/loop/backing_file")):
        with contextlib.suppress(OSError):  # detached meanwhile
            if backing.read_text().rstrip("\n").removesuffix(" (deleted)") == str(file):
                devices.append(f"/dev/{backing.parent.parent.name}")
    return devices


def detach_loop(device: str, file: Path, timeout_s: float) -> bool:
    """Detach a loop device from `file`; False if it is still open, then the kernel detaches it after the last close."""
    programs.run(["losetup", "--detach", device])
    deadline_s = time.monotonic() + timeout_s
    while device in loop_devices(file):
        if time.monotonic() > deadline_s:
            return False
        time.sleep(0.01)
    return True


def mounted_on(devices: list[str]) -> str | None:
    """Return where a file system on one of the devices is mounted, or None."""
    for fields in mount_lines():
        if fields[fields.index("-") + 2] in devices:
            return fields[4]
    return None


def drop_page_cache(device: str) -> None:
    """Write back and drop the page cache of a block device."""
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, _BLKFLSBUF)
    finally:
        os.close(descriptor)
