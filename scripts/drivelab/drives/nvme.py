"""What nvme-cli and sysfs say of NVMe drives.

Formats: NVM Express Base Specification 2.0, figures of Identify Controller, Identify Namespace, and the SMART and
Sanitize logs. nvme-cli writes the same keys in its versions 1 and 2, but counters as numbers in the one and as strings
in the other.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drivelab.drives import sysfs, tools
from drivelab.drives.sysfs import read_text

DATA_UNIT_BYTES = 512_000
"""Unit of the counters data_units_read and data_units_written: thousand blocks of 512 bytes."""
_KELVIN = 273
_NAMESPACE = re.compile(r"nvme\d+n\d+")
_CONTROLLER = re.compile(r"nvme\d+")
RELATIVE_PERFORMANCE = ("best", "better", "good", "degraded")
"""Of an LBA format, by its two bits."""


@dataclass(frozen=True)
class LbaFormat:
    """A format that a namespace can be given."""

    index: int
    data_bytes: int
    metadata_bytes: int
    """Per block, beside the data; drives formatted so cannot be tested as plain block devices."""
    relative_performance: str
    """In the maker's own words: best, better, good or degraded."""
    in_use: bool


@dataclass(frozen=True)
class Smart:
    """The SMART / Health Information log; None where a drive or a version of nvme-cli does not tell."""

    temperature_c: int | None
    available_spare_pct: int | None
    percentage_used_pct: int | None
    """The maker's estimate of the life that is used up; may exceed 100."""
    bytes_written: int | None
    """By hosts, over the drive's life."""
    bytes_read: int | None
    media_errors: int | None
    power_on_hours: int | None


def controller_of(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """`/dev/nvme0` for nvme0n1, whichever controller of a subsystem is alive; None if the drive is no NVMe namespace.

    With native multipath the numbers of drive and controller are unrelated, so links are followed, not names.
    """
    directory = controller_dir(name, sys_root)
    return f"/dev/{directory.name}" if directory is not None else None


def controller_dir(name: str, sys_root: Path = Path("/sys")) -> Path | None:
    """The controller's directory in sysfs; its `device` is the PCI function."""
    if not _NAMESPACE.fullmatch(name):
        return None
    parent = (sysfs.block_dir(name, sys_root) / "device").resolve()
    if _CONTROLLER.fullmatch(parent.name):
        return parent
    paths = [link.resolve() for link in sorted(parent.glob("nvme*")) if _CONTROLLER.fullmatch(link.name)]
    alive = [path for path in paths if read_text(path / "state") == "live"]
    return next(iter(alive or paths), None)


def namespaces(name: str, sys_root: Path = Path("/sys")) -> list[str]:
    """Kernel names of all namespaces of the NVM subsystem that a namespace is in, itself among them, in order.

    They share the serial number, and a sanitize operation erases them all.
    """
    subsystem = _subsystem(name, sys_root)
    if subsystem is None:
        return []
    found = [
        path.name
        for path in (sys_root / "class/block").glob("nvme*")
        if _NAMESPACE.fullmatch(path.name) and _subsystem(path.name, sys_root) == subsystem
    ]
    return sorted(found, key=lambda one: [int(number) for number in re.findall(r"\d+", one)])


def namespace_id(name: str, sys_root: Path = Path("/sys")) -> int | None:
    text = read_text(sysfs.block_dir(name, sys_root) / "nsid")
    return int(text) if text is not None and text.isdecimal() else None


def _subsystem(name: str, sys_root: Path) -> Path | None:
    """Directory of the subsystem, or of the controller where the kernel shows no subsystem."""
    controller = controller_dir(name, sys_root)
    if controller is None:
        return None
    for link in (sys_root / "class/nvme-subsystem").glob(f"*/{controller.name}"):
        return link.parent.resolve()
    return controller


def id_ctrl(device: str) -> dict[str, Any] | None:
    """Identify Controller of `/dev/nvme0` or a namespace; None if it does not answer.

    This and the readers below raise UserError where nvme-cli is not installed.
    """
    return tools.read_json("nvme", "id-ctrl", device, "--output-format=json")


def id_ns(device: str) -> dict[str, Any] | None:
    """Identify Namespace of `/dev/nvme0n1`; None if it does not answer."""
    return tools.read_json("nvme", "id-ns", device, "--output-format=json")


def smart_log(device: str) -> dict[str, Any] | None:
    """The SMART / Health Information log, temperatures in kelvin; None if there is none."""
    return tools.read_json("nvme", "smart-log", device, "--output-format=json")


def sanitize_log(device: str) -> dict[str, Any] | None:
    """The Sanitize Status log, of the one device asked for; None if the drive knows no sanitize."""
    answer = tools.read_json("nvme", "sanitize-log", device, "--output-format=json")
    return unwrap(answer) if answer is not None else None


def lifetime_bytes_written(device: str) -> int | None:
    """Bytes that hosts have written over a drive's life, to 512 kB; None if it does not tell.

    Raises UserError where nvme-cli is not installed.
    """
    answer = smart_log(device)
    return parse_smart(answer).bytes_written if answer is not None else None


def unwrap(answer: Mapping[str, Any]) -> dict[str, Any]:
    """A log without the device's name around it, under which nvme-cli puts the sanitize log."""
    inner = list(answer.values())
    return dict(inner[0]) if len(inner) == 1 and isinstance(inner[0], Mapping) else dict(answer)


def parse_smart(answer: Mapping[str, Any]) -> Smart:
    """The health of a drive from `smart_log`."""
    kelvin = whole(answer.get("temperature"))
    written, read = whole(answer.get("data_units_written")), whole(answer.get("data_units_read"))
    return Smart(
        temperature_c=kelvin - _KELVIN if kelvin else None,
        available_spare_pct=whole(answer.get("avail_spare")),
        percentage_used_pct=whole(answer.get("percent_used", answer.get("percentage_used"))),
        bytes_written=written * DATA_UNIT_BYTES if written is not None else None,
        bytes_read=read * DATA_UNIT_BYTES if read is not None else None,
        media_errors=whole(answer.get("media_errors")),
        power_on_hours=whole(answer.get("power_on_hours")),
    )


def parse_lba_formats(answer: Mapping[str, Any]) -> list[LbaFormat]:
    """All formats that a namespace knows, from `id_ns`; an unused entry (data size 0) is left out."""
    flbas = whole(answer.get("flbas")) or 0
    in_use = flbas & 0xF | (flbas >> 5 & 0x3) << 4
    found = []
    for index, entry in enumerate(answer.get("lbafs", [])):
        exponent = whole(entry.get("ds")) or 0
        if exponent:
            words = RELATIVE_PERFORMANCE[(whole(entry.get("rp")) or 0) & 0x3]
            found.append(LbaFormat(index, 1 << exponent, whole(entry.get("ms")) or 0, words, index == in_use))
    return found


def whole(value: Any) -> int | None:
    """A whole number as nvme-cli writes it: 12, 12.0, "12" or "12,345"; None for anything else."""
    if isinstance(value, str):
        digits = value.replace(",", "").strip()
        return int(digits) if re.fullmatch("[0-9]+", digits) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value)
