"""Ask the kernel what is behind a loop device (LOOP_GET_STATUS64, loop(4))."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from dataclasses import dataclass

from drivelab.drives import node

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
