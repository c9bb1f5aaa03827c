"""Find different drives that report one serial number: USB bridges, virtual machines and clones do that.

udev points one link under /dev/disk/by-id at any of them, so neither the path nor the serial number tells which is
meant.
"""

from __future__ import annotations

import re
from pathlib import Path

from drivelab.core.units import format_amount
from drivelab.drives import identified, identity, nvme, sysfs
from drivelab.drives.composition import kind_of
from drivelab.drives.identified import Identity
from drivelab.plan.subject_kinds import DRIVE, NAMESPACE

_WORLD_WIDE = re.compile(r"(?:naa|eui|uuid)\.[0-9a-f](?=.*[1-9a-f])[0-9a-f-]+")
"""A name that the vendor assigned to one drive. `t10.…` and `nvme.…` only repeat vendor, model and serial number, and
some vendors leave a number zero."""
_ONE_PATH = ("sata", "usb")
"""Transports with a single port: two such devices are two drives."""
REMEDY_IN_LIST = "detach one of them, or give it another serial number (serial= in a virtual machine)"
REMEDY = f"{REMEDY_IN_LIST.capitalize()}; 'drivelab drives' shows both."


def with_same_serial(
    name: str, serial: str, kind: str = DRIVE.name, sys_root: Path = Path("/sys"), udev_root: Path = sysfs.UDEV
) -> str | None:
    """Return which other attached drive reports the serial number of a drive, or of a namespace the identifier.

    None if there is no other. The paths of a drive to which several lead, and the namespaces of an NVMe drive, are one
    drive. A card reader's empty slots do not count. What is no drive has the number of the drive below it; the guard
    refuses it for what it is.
    """
    name = sysfs.whole_dir(name, sys_root).name
    if kind_of(name, sys_root) != DRIVE.name:
        return None
    for other in identity.whole_disks(sys_root):
        if (
            other != name
            and kind_of(other, sys_root) == DRIVE.name
            and _reported(other, kind, sys_root, udev_root) == serial
            and sysfs.capacity_bytes(other, sys_root)
            and not _is_one_drive(name, other, serial, sys_root)
        ):
            what = "identifier" if kind == NAMESPACE.name else "serial number"
            both = " and ".join(_words(identified.read(one, serial, (), sys_root), one) for one in (name, other))
            return f"{both} both report the {what} {serial}"
    return None


def _reported(name: str, kind: str, sys_root: Path, udev_root: Path) -> str | None:
    if kind == NAMESPACE.name:
        return sysfs.read_text(sysfs.block_dir(name, sys_root) / "wwid")
    return sysfs.serial(name, sys_root, udev_root)


def _is_one_drive(first: str, second: str, serial: str, sys_root: Path) -> bool:
    """Return whether two devices with one serial number are paths to one drive, or namespaces of one."""
    if second in nvme.namespaces(first, sys_root):
        return True  # the kernel joins only controllers that prove to belong to one subsystem
    one, other = (identified.read(name, serial, (), sys_root) for name in (first, second))
    if one != other or _WORLD_WIDE.fullmatch(one.wwid or "") is None:
        return False
    return all(sysfs.describe(name, sys_root)["transport"] not in _ONE_PATH for name in (first, second))


def _words(drive: Identity, name: str) -> str:
    return f"/dev/{name} ({drive.model or 'unknown model'}, {format_amount(drive.capacity_bytes)})"
