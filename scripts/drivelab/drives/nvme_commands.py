"""Open the character device that passes NVMe commands to a namespace, past the block layer.

Linux names the two nodes of a namespace nvmeXnY and ngXnY and keeps both names while one is open
(drivers/nvme/host/multipath.c and core.c, nvme_add_ns_cdev).
"""

from __future__ import annotations

import fcntl
import os
import re
import stat
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.drives.approved import HeldDevice
from drivelab.drives.nvme import NAMESPACE

NVME_IOCTL_ID = 0x4E40
"""linux/nvme_ioctl.h: _IO('N', 0x40), which returns the namespace's number."""


def character_name(name: str) -> str | None:
    """Return the kernel name of the character device of a namespace, such as `ng0n1`; None for other devices.

    A partition has none.
    """
    return f"ng{name.removeprefix('nvme')}" if NAMESPACE.fullmatch(name) else None


def can_crash(threads: int, *, polled: bool, nvme: bool) -> bool:
    """Return whether threads that poll for NVMe commands can crash this kernel: several do before Linux 6.5.

    There, the kernel polls the memory of a command that the poll of another thread may have freed
    (drivers/nvme/host/ioctl.c, nvme_ns_chr_uring_cmd_iopoll; since 6.5 it polls the request, which stays).
    """
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return polled and nvme and threads > 1 and (version is None or (int(version[1]), int(version[2])) < (6, 5))


def open_character_device(held: HeldDevice, dev: Path = Path("/dev"), sys_root: Path = Path("/sys")) -> int:
    """Return a descriptor of the character device of an approved namespace, open for reading and writing.

    Raises UserError if the device is not a whole NVMe namespace, has no character device, or the node in /dev is
    another device's.
    """
    name = character_name(held.name)
    if name is None:
        raise UserError(
            f"{held.device} is not a whole NVMe namespace, which takes NVMe commands; remove 'nvme' from the protocol"
        )
    try:
        descriptor = os.open(dev / name, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(
            f"{dev / name}, which passes NVMe commands to {held.device}, cannot be opened ({error.strerror}). It needs "
            "Linux 5.13 or newer; remove 'nvme' from the protocol"
        ) from None
    try:
        _require_same_namespace(descriptor, name, held, sys_root)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _require_same_namespace(descriptor: int, name: str, held: HeldDevice, sys_root: Path) -> None:
    about = os.fstat(descriptor)
    link = sys_root / "dev/char" / f"{os.major(about.st_rdev)}:{os.minor(about.st_rdev)}"
    if not stat.S_ISCHR(about.st_mode) or link.resolve().name != name or not _same_number(descriptor, held):
        raise UserError(
            f"/dev/{name} is not the character device of {held.device}. Nothing was written. The node is stale, and a "
            "command could reach the wrong drive; remove it and run udevadm trigger"
        )


def _same_number(descriptor: int, held: HeldDevice) -> bool:
    try:
        return fcntl.ioctl(descriptor, NVME_IOCTL_ID) == fcntl.ioctl(held.node.descriptor, NVME_IOCTL_ID)
    except OSError:
        return False
