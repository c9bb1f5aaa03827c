"""List partitions, volumes and arrays: what to enter in the drive sheet for them, and why one cannot be tested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import guard, identity, sysfs
from drivelab.drives.composed import Subject, is_composed
from drivelab.drives.composition import kind_of, partitions
from drivelab.drives.described import composition_words
from drivelab.drives.identifiers import identifier
from drivelab.drives.sysfs import block_dir, read_text
from drivelab.plan.subject_kinds import ARRAY, KINDS, PARTITION, VOLUME

_FOLDERS = {
    PARTITION.name: ("/dev/disk/by-partuuid", "/dev/disk/by-id"),
    VOLUME.name: ("/dev/mapper",),
    ARRAY.name: ("/dev/md", "/dev/disk/by-id"),
}


def composed_subjects(disks: list[str]) -> list[str]:
    """Return the kernel names of all partitions, mappings and arrays among and on devices, given by kernel name."""
    found = [name for name in disks if is_composed(kind_of(name))]
    return [*(part for name in disks for part in partitions(name)), *found]


def facts(name: str) -> dict[str, Any] | None:
    """Return the facts of a composed subject, or None if it vanished meanwhile.

    The keys are those of `identity.describe` where they apply, and `kind`, `serial` (its identifier), `members` (serial
    numbers), `composition`, `pin` (its path in the sheet, or None), `reason` (why it cannot be tested, or None).
    """
    kind = kind_of(name)
    if not is_composed(kind):
        return None
    subject = Subject(name)
    logical = sysfs.logical_block_bytes(name)
    physical = int(read_text(sysfs.whole_dir(name) / "queue/physical_block_size") or logical)
    found: dict[str, Any] = {
        **dict.fromkeys(("lba_formats", "link_max", "temperature_c", "life_used_pct", "spare_pct", "by_id")),
        **sysfs.describe(name),
        "model": _model(name, kind),
        "transport": {PARTITION.name: "part", VOLUME.name: "dm", ARRAY.name: "md"}[kind],
        "physical_block_bytes": physical,
        "lba_format": identity.lba_format_word(logical, physical),
        "virtual": False,
        "kind": kind,
        "members": sorted({serial for disk in subject.disks if (serial := subject.serial(disk))}),
        "composition": composition_words(name),
    }
    try:
        found["serial"] = identifier(kind, name)
        found["pin"] = _pin(name, kind)
        found["reason"] = _reason(subject, kind, found)
    except UserError as error:  # a program that the guard needs is missing
        found |= {"serial": None, "pin": None, "reason": str(error)}
    return found


def _model(name: str, kind: str) -> str | None:
    directory = block_dir(name)
    if kind == PARTITION.name:
        return f"partition {read_text(directory / 'partition')} of {directory.parent.name}"
    return read_text(directory / ("dm/name" if kind == VOLUME.name else "md/level"))


def _pin(name: str, kind: str) -> str | None:
    """Return a path of a subject that does not change and that the sheet accepts; None if there is none."""
    for folder in map(Path, _FOLDERS[kind]):
        for link in sorted(folder.glob("*")):
            if KINDS[kind].device.fullmatch(str(link)) and _leads_to(link, name):
                return str(link)
    return None


def _leads_to(path: Path, name: str) -> bool:
    """Return whether a path is a node of a device, or a link to one; without udev, /dev/mapper has nodes."""
    try:
        return sysfs.kernel_name(str(path)) == name
    except OSError:
        return False


def _reason(subject: Subject, kind: str, found: dict[str, Any]) -> str | None:
    if found["capacity_bytes"] == 0:
        return "it has no blocks"
    if not found["serial"]:
        return f"it has no identifier: {KINDS[kind].pinned_by}"
    if (reason := subject.wrong_members(found["members"])) is not None:
        return reason
    if (reason := guard.composed_holder(f"/dev/{subject.name}", subject)) is not None:
        return reason
    return None if found["pin"] else f"it has no path that does not change: {KINDS[kind].paths}"
