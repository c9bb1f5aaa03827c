"""Read NVMe drives with nvme-cli and sysfs, and open their character devices.

Formats: NVM Express Base Specification 2.0, figures of Identify Controller, Identify Namespace, and the SMART and
Sanitize logs. nvme-cli 1 and 2 write the same keys, but one writes counters as numbers and the other as strings.
A character device passes NVMe commands to a namespace, past the block layer. Linux names the two nodes of a namespace
nvmeXnY and ngXnY and keeps both names while one is open (drivers/nvme/host/multipath.c and core.c, nvme_add_ns_cdev).
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import sysfs, tools
from drivelab.drives.approved import HeldDevice
from drivelab.drives.sysfs import read_text

NVME_IOCTL_ID = 0x4E40
"""linux/nvme_ioctl.h: _IO('N', 0x40), which returns the namespace's number."""


def character_name(name: str) -> str | None:
    """Return the kernel name of the character device of a namespace, such as `ng0n1`; None for other devices.

    A partition has none.
    """
    return f"ng{name.removeprefix('nvme')}" if NAMESPACE.fullmatch(name) else None


def can_crash(*, polled: bool, nvme: bool) -> bool:
    """Return whether polling for NVMe commands can crash this kernel: it does before Linux 6.5.

    There, the kernel polls the memory of a command that may have been freed: by the poll of another thread, and by its
    own completion when a thread moved to another processor. One of 16 emulated machines crashed with one thread
    (drivers/nvme/host/ioctl.c, nvme_ns_chr_uring_cmd_iopoll; since 6.5 it polls the request, which stays).
    """
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return polled and nvme and (version is None or (int(version[1]), int(version[2])) < (6, 5))


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


DATA_UNIT_BYTES = 512_000
"""Unit of the counters data_units_read and data_units_written: 1000 blocks of 512 bytes."""
_KELVIN = 273
NAMESPACE = re.compile(r"nvme\d+n\d+")
_CONTROLLER = re.compile(r"nvme\d+")
RELATIVE_PERFORMANCE = ("best", "better", "good", "degraded")
"""Relative performance of an LBA format, indexed by its two bits."""


@dataclass(frozen=True)
class LbaFormat:
    """An LBA format that a namespace supports."""

    index: int
    data_bytes: int
    metadata_bytes: int
    """Per block, in addition to the data; a drive with metadata cannot be tested as a plain block device."""
    relative_performance: str
    """According to the vendor: best, better, good or degraded."""
    in_use: bool


@dataclass(frozen=True)
class Smart:
    """The SMART / Health Information log; None for values that the drive or the nvme-cli version does not report."""

    temperature_c: int | None
    available_spare_pct: int | None
    percentage_used_pct: int | None
    """The vendor's estimate of the life used; may exceed 100."""
    bytes_written: int | None
    """Written by hosts over the drive's life."""


def controller_of(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return a live controller of a namespace, such as `/dev/nvme0` for nvme0n1; None if it is not an NVMe namespace.

    With native multipath the numbers of drive and controller are unrelated, so this follows links, not names.
    """
    directory = controller_dir(name, sys_root)
    return f"/dev/{directory.name}" if directory is not None else None


def controller_dir(name: str, sys_root: Path = Path("/sys")) -> Path | None:
    """Return the controller's directory in sysfs, whose `device` is the PCI function."""
    if not NAMESPACE.fullmatch(name):
        return None
    parent = (sysfs.block_dir(name, sys_root) / "device").resolve()
    if _CONTROLLER.fullmatch(parent.name):
        return parent
    paths = [link.resolve() for link in sorted(parent.glob("nvme*")) if _CONTROLLER.fullmatch(link.name)]
    alive = [path for path in paths if read_text(path / "state") == "live"]
    return next(iter(alive or paths), None)


def namespaces(name: str, sys_root: Path = Path("/sys")) -> list[str]:
    """Return the kernel names of all namespaces in the NVM subsystem of a namespace, itself included, sorted.

    They share the serial number, and a sanitize operation erases them all.
    """
    subsystem = _subsystem(name, sys_root)
    if subsystem is None:
        return []
    names = [
        path.name
        for path in (sys_root / "class/block").glob("nvme*")
        if NAMESPACE.fullmatch(path.name) and _subsystem(path.name, sys_root) == subsystem
    ]
    return sorted(names, key=lambda name: [int(number) for number in re.findall(r"\d+", name)])


def namespace_id(name: str, sys_root: Path = Path("/sys")) -> int | None:
    text = read_text(sysfs.block_dir(name, sys_root) / "nsid")
    return int(text) if text is not None and text.isdecimal() else None


def _subsystem(name: str, sys_root: Path) -> Path | None:
    """Return the directory of the subsystem, or of the controller if the kernel shows no subsystem."""
    controller = controller_dir(name, sys_root)
    if controller is None:
        return None
    for link in (sys_root / "class/nvme-subsystem").glob(f"*/{controller.name}"):
        return link.parent.resolve()
    return controller


def id_ctrl(device: str) -> dict[str, Any] | None:
    """Return Identify Controller of `/dev/nvme0` or of a namespace; None if it does not answer.

    This and the readers below raise UserError if nvme-cli is not installed.
    """
    return tools.read_json("nvme", "id-ctrl", device, "--output-format=json")


def id_ns(device: str) -> dict[str, Any] | None:
    """Return Identify Namespace of `/dev/nvme0n1`; None if it does not answer."""
    return tools.read_json("nvme", "id-ns", device, "--output-format=json")


def smart_log(device: str) -> dict[str, Any] | None:
    """Return the SMART / Health Information log, temperatures in kelvin; None if it cannot be read."""
    return tools.read_json("nvme", "smart-log", device, "--output-format=json")


def sanitize_log(device: str) -> dict[str, Any] | None:
    """Return the Sanitize Status log of one device; None if the drive does not support sanitize."""
    answer = tools.read_json("nvme", "sanitize-log", device, "--output-format=json")
    return unwrap(answer) if answer is not None else None


def lifetime_bytes_written(device: str) -> int | None:
    """Return the bytes written by hosts over a drive's life, in steps of 512 kB; None if not reported.

    Raises UserError if nvme-cli is not installed.
    """
    answer = smart_log(device)
    return parse_smart(answer).bytes_written if answer is not None else None


def unwrap(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Remove the device name under which nvme-cli nests the sanitize log."""
    inner = list(answer.values())
    return dict(inner[0]) if len(inner) == 1 and isinstance(inner[0], Mapping) else dict(answer)


def parse_smart(answer: Mapping[str, Any]) -> Smart:
    """Parse the answer of `smart_log`."""
    kelvin = whole(answer.get("temperature"))
    written = whole(answer.get("data_units_written"))
    return Smart(
        temperature_c=kelvin - _KELVIN if kelvin else None,
        available_spare_pct=whole(answer.get("avail_spare")),
        percentage_used_pct=whole(answer.get("percent_used", answer.get("percentage_used"))),
        bytes_written=written * DATA_UNIT_BYTES if written is not None else None,
    )


def parse_lba_formats(answer: Mapping[str, Any]) -> list[LbaFormat]:
    """Return all LBA formats of a namespace, from `id_ns`, without unused entries (data size 0)."""
    flbas = whole(answer.get("flbas")) or 0
    in_use = flbas & 0xF | (flbas >> 5 & 0x3) << 4
    formats = []
    for index, entry in enumerate(answer.get("lbafs", [])):
        exponent = whole(entry.get("ds")) or 0
        if exponent:
            performance = RELATIVE_PERFORMANCE[(whole(entry.get("rp")) or 0) & 0x3]
            formats.append(LbaFormat(index, 1 << exponent, whole(entry.get("ms")) or 0, performance, index == in_use))
    return formats


def whole(value: Any) -> int | None:
    """Parse a whole number as nvme-cli writes it: 12, 12.0, "12" or "12,345"; None for anything else."""
    if isinstance(value, str):
        digits = value.replace(",", "").strip()
        return int(digits) if re.fullmatch("[0-9]+", digits) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)
