"""Identify drives from the kernel, udev and, where installed, the drive tools (nvme-cli, hdparm, sg3_utils)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from drivelab.core.errors import UserError
from drivelab.core.files import real_path
from drivelab.drives import ata, nvme, scsi, sysfs, tools
from drivelab.drives.sysfs import known, read_text
from drivelab.virtual.fuse import is_virtual
from drivelab.virtual.model import PRODUCT

BY_ID = Path("/dev/disk/by-id")
_NO_DRIVE = re.compile(r"(ram|zram|sr|fd)\d+|mmcblk\d+(boot\d+|rpmb|gp\d+)")
_NUMBERS = re.compile(r"(\d+)")
_NUMBERS_ONLY = ("wwn-", "nvme-eui.", "nvme-nvme.", "nvme-uuid.", "scsi-3")
_PREFIXES = ("nvme-", "ata-", "scsi-")

T = TypeVar("T")


def whole_disks(sys_root: Path = Path("/sys")) -> list[str]:
    """Return the kernel names of all block devices except partitions, in natural order.

    Left out: memory, optical and floppy drives, boot areas of flash cards, idle loop devices, hidden NVMe paths.
    """
    names = [path.name for path in (sys_root / "class/block").glob("*") if _listed(path.name, sys_root)]
    return sorted(names, key=lambda name: (name[:2], [part.zfill(9) for part in _NUMBERS.split(name)]))


def attached(sys_root: Path = Path("/sys")) -> list[str]:
    """Return the kernel names of drives of hardware or a hypervisor: no loop, RAM, device-mapper or md devices."""
    return sorted(path.name for path in (sys_root / "block").glob("*") if (path / "device").exists())


def attached_name(device: str) -> str:
    """Return the kernel's name of a device, given with its path or without /dev; raises UserError without one."""
    try:
        return sysfs.kernel_name(device if "/" in device else f"/dev/{device}")
    except OSError:
        name = device.removeprefix("/dev/")
        raise UserError(f"doctor: there is no block device {name}; run lsblk to list the attached devices") from None


def _listed(name: str, sys_root: Path) -> bool:
    directory = sysfs.block_dir(name, sys_root)
    if _NO_DRIVE.fullmatch(name) or (directory / "partition").exists() or read_text(directory / "hidden") == "1":
        return False
    if name.startswith("loop"):
        return read_text(directory / "loop/backing_file") is not None
    return not (name.startswith("nbd") and sysfs.capacity_bytes(name, sys_root) == 0)


def host_bus_adapter(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return driver and PCI IDs of the controller that a SATA or SAS drive is connected to; None for others.

    It is the nearest PCI function above the drive that is a mass storage controller (class 01h), but not an NVMe one
    (PCI Code and ID Assignment Specification, section 1.2).
    """
    for folder in sysfs.block_dir(name, sys_root).resolve().parents:
        kind = read_text(folder / "class") or ""
        if kind.startswith("0x01"):
            ids = ":".join((read_text(folder / part) or "?").removeprefix("0x") for part in ("vendor", "device"))
            driver = (folder / "driver").resolve().name if (folder / "driver").exists() else "no driver"
            return None if kind.startswith("0x0108") else f"{driver}, PCI {ids}"
    return None


_MOST_PARTS = re.compile(r"(?:naa\.|eui\.)(?:5|(?=[0-9a-f]{16}$))([0-9a-f]{6})")
"""The OUI in a world wide name: after the format digit 5 (NAA 5, SPC-5 7.8.6.6), or first in an EUI-64."""


def manufacturer(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return who made a drive: the PCI vendor of an NVMe drive, or the IEEE OUI in the world wide name of others.

    The name follows from systemd's hardware database, if it is installed and knows the number; None if the drive tells
    no number.
    """
    directory = sysfs.block_dir(name, sys_root) / "device"
    vendor = read_text(directory / "device/vendor") if name.startswith("nvme") else None
    if vendor is not None:
        number = vendor.removeprefix("0x")
        maker = _from_database(f"pci:v0000{number.upper()}*", "ID_VENDOR_FROM_DATABASE")
        return f"{maker} (PCI vendor {number})" if maker else f"PCI vendor {number}"
    found = _MOST_PARTS.match(read_text(directory / "wwid") or "")
    if found is None:
        return None
    maker = _from_database(f"OUI:{found[1].upper()}", "ID_OUI_FROM_DATABASE")
    return f"{maker} (OUI {found[1]})" if maker else f"OUI {found[1]}"


def _from_database(key: str, name: str) -> str | None:
    output = _ask(lambda text: tools.run("systemd-hwdb", "query", text), key)
    lines = output.stdout.splitlines() if output is not None and output.status == 0 else []
    return next((line.partition("=")[2] for line in lines if line.startswith(f"{name}=")), None)


def describe(
    name: str, sys_root: Path = Path("/sys"), udev_root: Path = sysfs.UDEV, by_id_root: Path = BY_ID
) -> dict[str, Any]:
    """Return all facts about a drive, ready for JSON; None for unknown facts.

    Includes all keys of `sysfs.describe`. A tool that is not installed leaves its keys None.
    """
    serial = sysfs.serial(name, sys_root, udev_root)
    facts: dict[str, Any] = {
        **sysfs.describe(name, sys_root),
        "serial": serial,
        "by_id": by_id(name, serial, sys_root, by_id_root),
        **sysfs.blocks(name, sys_root),
        "lba_formats": None,
        "link_max": None,
        "controller": host_bus_adapter(name, sys_root),
        "manufacturer": manufacturer(name, sys_root),
        "temperature_c": _hwmon_c(name, sys_root),
        "life_used_pct": None,
        "spare_pct": None,
        "lifetime_bytes_written": None,
    }
    if name.startswith("nvme"):
        more = _nvme(name, sys_root)
    elif scsi.is_sas(name, sys_root):
        more = _sas(name, sys_root)
    elif facts["transport"] == "sata" or read_text(sysfs.block_dir(name, sys_root) / "device/vendor") == "ATA":
        more = _sata(name, sys_root, udev_root)
    else:
        more = _other(name, sys_root)
    virtual = {"model": PRODUCT, "transport": "virtual", "virtual": True} if is_virtual(name, sys_root) else {}
    return facts | {key: value for key, value in more.items() if value is not None} | virtual


def by_id(name: str, serial: str | None, sys_root: Path = Path("/sys"), root: Path = BY_ID) -> str | None:
    """Return the most descriptive path of a drive under /dev/disk/by-id, or None if udev has created none.

    Names with the serial number rank before plain identifiers. Where several namespaces of an NVMe drive share the
    serial number, a name without the namespace is ambiguous and ranks last.
    """
    links = [link.name for link in root.glob("*") if link.is_symlink() and real_path(link).name == name]
    serial_in_link = "_".join(serial.split()) if serial else None

    def order(link: str) -> tuple[bool, bool, bool, int, int, str]:
        numbers_only = link.startswith(_NUMBERS_ONLY)
        kind = next((rank for rank, prefix in enumerate(_PREFIXES) if link.startswith(prefix)), len(_PREFIXES))
        no_serial = serial_in_link is None or serial_in_link not in link
        return is_ambiguous(link, name, sys_root), no_serial, numbers_only, kind, len(link), link

    return str(root / min(links, key=order)) if links else None


def is_ambiguous(path: str, name: str, sys_root: Path = Path("/sys")) -> bool:
    """Return whether a by-id path may lead to any of several namespaces that share a serial number.

    udev creates the link nvme-MODEL_SERIAL for each of them, and the last one wins.
    """
    link = Path(path).name
    if not link.startswith("nvme-") or link.startswith(_NUMBERS_ONLY):
        return False
    numbers = {nvme.namespace_id(other, sys_root) for other in nvme.namespaces(name, sys_root)}
    return len(numbers) > 1 and not link.endswith(f"_{nvme.namespace_id(name, sys_root)}")


def _ask(question: Callable[[str], T], device: str) -> T | None:
    """Ask a drive tool; None if the tool is not installed, because the listing works without it."""
    try:
        return question(device)
    except UserError:
        return None


def _nvme(name: str, sys_root: Path) -> dict[str, Any]:
    controller = nvme.controller_dir(name, sys_root)
    if controller is None:
        return {}
    pci = controller / "device"
    identify, health = _ask(nvme.id_ns, f"/dev/{name}"), _ask(nvme.smart_log, f"/dev/{controller.name}")
    smart = nvme.parse_smart(health or {})
    return {
        "transport": read_text(controller / "transport"),
        "firmware": read_text(controller / "firmware_rev"),
        "link": _pci_link(pci, "current"),
        "link_max": _pci_link(pci, "max"),
        "lba_formats": [asdict(entry) for entry in nvme.parse_lba_formats(identify)] if identify else None,
        "temperature_c": smart.temperature_c,
        "life_used_pct": smart.percentage_used_pct,
        "spare_pct": smart.available_spare_pct,
        "lifetime_bytes_written": smart.bytes_written,
    }


def _pci_link(pci: Path, which: str) -> str | None:
    return _times(known(pci / f"{which}_link_speed"), known(pci / f"{which}_link_width"))


def _sata(name: str, sys_root: Path, udev_root: Path) -> dict[str, Any]:
    """Ask hdparm and udev for model and firmware, because SCSI truncates them to 16 and 4 characters."""
    drive = _ask(ata.identify, f"/dev/{name}")
    udev = sysfs.udev(name, sys_root, udev_root)
    negotiated, maximal = _sata_speed(name, sys_root)
    return {
        "transport": "sata",
        "model": (drive.model if drive else None) or udev.get("ID_MODEL", "").replace("_", " ").strip() or None,
        "firmware": (drive.firmware if drive else None) or udev.get("ID_REVISION"),
        "link": negotiated,
        "link_max": maximal,
    }


def _sata_speed(name: str, sys_root: Path) -> tuple[str | None, str | None]:
    """Return negotiated and maximal speed of an ATA port, or of the SAS phy that a SATA drive is attached to."""
    directory = str(sysfs.block_dir(name, sys_root))
    port, channel = re.search(r"/ata(\d+)/", directory), re.search(r"/target\d+:(\d+):", directory)
    if port is None:
        return _sas_speed(name, sys_root)
    links = sys_root / "class/ata_link"
    behind_multiplier = links / f"link{port[1]}.{channel[1] if channel else 0}"
    link = behind_multiplier if behind_multiplier.exists() else links / f"link{port[1]}"
    return known(link / "sata_spd"), known(link / "hw_sata_spd_limit")


def _sas(name: str, sys_root: Path) -> dict[str, Any]:
    device = f"/dev/{name}"
    negotiated, maximal = _sas_speed(name, sys_root)
    return {
        "transport": "sas",
        "link": negotiated,
        "link_max": maximal,
        "temperature_c": _ask(scsi.temperature_c, device),
        "life_used_pct": _ask(scsi.percentage_used_pct, device),
    }


def _sas_speed(name: str, sys_root: Path) -> tuple[str | None, str | None]:
    link = scsi.sas_link(name, sys_root)
    if link is None:
        return None, None
    return _times(link.negotiated, link.width), _times(link.maximal, link.width)


def _times(speed: str | None, width: str | int | None) -> str | None:
    return f"{speed} x{width}" if speed and width else None


def _other(name: str, sys_root: Path) -> dict[str, Any]:
    """Describe flash cards, which use other sysfs files, and mappings and RAIDs, whose model is a name or a level."""
    directory = sysfs.block_dir(name, sys_root)
    if name.startswith("dm-"):
        return {"model": read_text(directory / "dm/name"), "transport": "dm"}
    if (directory / "md").exists():
        return {"model": read_text(directory / "md/level"), "transport": "md"}
    if name.startswith("mmcblk"):
        return {
            "model": read_text(directory / "device/name"),
            "firmware": read_text(directory / "device/fwrev"),
            "transport": "mmc",
        }
    return {}


def _hwmon_c(name: str, sys_root: Path) -> float | None:
    """Return the kernel's first temperature sensor of a drive (drivetemp, nvme), degrees Celsius."""
    parents = [sysfs.block_dir(name, sys_root) / "device", nvme.controller_dir(name, sys_root)]
    for parent in filter(None, parents):
        for path in (*sorted(parent.glob("hwmon*/temp1_input")), *sorted(parent.glob("hwmon/*/temp1_input"))):
            text = read_text(path) or ""
            if re.fullmatch(r"-?\d+", text):
                return int(text) / 1000
    return None
