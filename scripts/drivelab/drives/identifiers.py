"""Read what pins a subject: a drive's serial number, the UUID of a partition, mapping or array, a namespace's WWID."""

from __future__ import annotations

import re
from pathlib import Path

from drivelab.drives import identity, sysfs, tools
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.plan.subject_kinds import ARRAY, NAMESPACE, PARTITION, VOLUME
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel


def actual_serial(device: str, name: str) -> str | None:
    """Return the serial of the device at a path: from a virtual drive's record, else from the kernel."""
    record = manage.find_by_device(device)
    return record.serial if record is not None else sysfs.serial(name)


def actual_firmware(device: str, name: str) -> str | None:
    """Return the firmware of the device at a path, from the same source as `actual_serial`."""
    record = manage.find_by_device(device)
    if record is not None:
        return DriveModel.from_mapping(record.name, record.model).firmware
    firmware: str | None = identity.describe(name)["firmware"]
    return firmware


def identifier(kind: str, name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return the identifier of a subject that is not a whole drive, given by its kernel name; None if it has none.

    Raises UserError without the program that reads it.
    """
    if kind == PARTITION.name:
        return partition_uuid(name, sys_root)
    directory = block_dir(name, sys_root)
    if kind == VOLUME.name:
        return read_text(directory / "dm/uuid") or None
    if kind == ARRAY.name:
        return array_uuid(name, sys_root)
    return read_text(directory / "wwid") if kind == NAMESPACE.name else None


def same(kind: str, first: str, second: str) -> bool:
    """Return whether two spellings mean one identifier.

    mdadm and the kernel write the UUID of an array differently; the UUID of a partition has capitals in some places.
    """
    if kind == ARRAY.name:
        return _digits(first) == _digits(second)
    if kind == PARTITION.name:
        return first.lower() == second.lower()
    return first == second


def partition_uuid(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return the UUID of a partition in the table on its drive; None if the table has no such partition.

    None also if the kernel's partition is at another place than the table says: then one of them is out of date, and
    the UUID would name other blocks.
    """
    directory = block_dir(name, sys_root)
    number, start, size = (read_text(directory / file) or "" for file in ("partition", "start", "size"))
    if not number or not (directory.parent / "dev").exists():
        return None
    columns = ("--noheadings", "--output", "START,SECTORS,UUID")
    output = tools.run("partx", "--show", *columns, "--nr", number, f"/dev/{directory.parent.name}")
    fields = output.stdout.split()
    return fields[2] if output.status == 0 and len(fields) == 3 and fields[:2] == [start, size] else None


def array_uuid(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return the UUID of an array as mdadm writes it, or from the kernel (since Linux 6.0) without mdadm."""
    if text := read_text(block_dir(name, sys_root) / "md/uuid"):
        digits = _digits(text)
        return ":".join(digits[at : at + 8] for at in range(0, 32, 8)) if digits.strip("0") else None
    output = tools.run("mdadm", "--detail", "--export", f"/dev/{name}")
    match = re.search(r"^MD_UUID=(\S+)$", output.stdout, re.MULTILINE)
    return match[1] if match else None


def _digits(uuid: str) -> str:
    return re.sub(r"[^0-9a-f]", "", uuid.lower())
