"""Describe a subject and the disks below it: for seals, for identity.json, and for the drive sheet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import format_amount
from drivelab.drives import device_mapper, doubles, guard, identity, nvme, sysfs
from drivelab.drives.approved import ApprovedDevice
from drivelab.drives.arrays import REBUILDING, array_state
from drivelab.drives.composed import Subject, is_composed
from drivelab.drives.composition import Composition, directly_below, extent_of, kind_of, partitions
from drivelab.drives.device_mapper import Target
from drivelab.drives.identifiers import actual_serial, identifier
from drivelab.drives.sysfs import Wear, block_dir, read_text
from drivelab.plan.subject_kinds import ARRAY, DRIVE, KINDS, PARTITION, VOLUME
from drivelab.virtual import manage
from drivelab.virtual.fuse import is_virtual
from drivelab.virtual.model import DriveModel

_WITH_RECORDS = {"thin", "thin-pool", "raid", "mirror", "cache", "writecache", "integrity"}
_RECORDS_BYTES = 8 << 20
"""More than superblocks, bitmaps and pool records that follow the last write; less than any resynchronization."""
_READINGS = 100
"""Most attempts to read the counters of a disk and its partitions without a write between."""


def _lifetime_bytes_written(device: str, name: str) -> int | None:
    """Return the drive's own count of bytes written; None if it has none."""
    record = manage.find_by_device(device)
    if record is not None:
        return manage.counters(record.name)["host_write_bytes"]
    return nvme.lifetime_bytes_written(device) if name.startswith("nvme") else None


def composed_wear(drive: ApprovedDevice) -> Wear:
    """Return the counters of a partition, volume or array for a seal, with those of the disks below."""
    own, chain = sysfs.wear(drive.name), Composition(drive.name).chain
    members: dict[str, dict[str, int]] = {}
    lifetimes: list[int | None] = []
    for disk in drive.disks:
        device = f"/dev/{disk}"
        counters = members.setdefault(str(actual_serial(device, disk)), {})
        below, parts = _at_once(disk, [part for part in partitions(disk) if part in chain])
        for name in ("sectors_written", "sectors_discarded"):  # the paths of a multipath disk add up
            whole, inside = getattr(below, name), sum(getattr(part, name) for part in parts)
            counters[name] = counters.get(name, 0) + (inside if parts else whole)
            counters[f"{name}_beside"] = counters.get(f"{name}_beside", 0) + (whole - inside if parts else 0)
        lifetimes.append(_lifetime_bytes_written(device, disk))
    known = [lifetime for lifetime in lifetimes if lifetime is not None]
    return replace(
        own,
        lifetime_bytes_written=sum(known) if len(known) == len(lifetimes) else None,
        members=members,
        own_records_bytes=_own_writes_bytes(drive.name, drive.disks),
    )


def _at_once(disk: str, parts: Sequence[str]) -> tuple[Wear, list[Wear]]:
    """Return the counters of a disk and of its partitions, without a write to the disk between the readings.

    A pool or array may write its records at that moment. If the disk is written to all the time, so that no reading
    succeeds, the last one counts: its seal is broken anyway.
    """
    whole = sysfs.wear(disk)
    for _ in range(_READINGS):
        of_parts = [sysfs.wear(part) for part in parts]
        before, whole = whole, sysfs.wear(disk)
        if before == whole:
            break
    return whole, of_parts


def _own_writes_bytes(name: str, disks: Iterable[str], sys_root: Path = Path("/sys")) -> int:
    """Return what the kernel may write to a member by itself: records, and during a rebuild the whole member."""
    if not _keeps_records(name, sys_root):
        return 0
    state = array_state(name, sys_root)
    rebuilds = state is not None and state.state == REBUILDING
    return _RECORDS_BYTES + (max(sysfs.capacity_bytes(disk, sys_root) for disk in disks) if rebuilds else 0)


def _keeps_records(name: str, sys_root: Path = Path("/sys")) -> bool:
    """Return whether the kernel writes to the disks by itself, after and between the writes to the subject."""
    chain = Composition(name, sys_root).chain
    if any(kind_of(part, sys_root) == ARRAY.name for part in chain):
        return True
    return any(target.kind in _WITH_RECORDS for part in chain for target in _table(part))


def _table(name: str) -> Sequence[Target]:
    if kind_of(name) != VOLUME.name:
        return ()
    try:
        return device_mapper.table(name)
    except OSError:
        return ()


def describe(drive: ApprovedDevice) -> dict[str, Any]:
    """Return the facts of a subject for identity.json: those of `identity.describe`, kind, composition and members."""
    facts = identity.describe(drive.name) | {"kind": drive.kind, "composition": None, "members": []}
    if not drive.disks:
        return facts
    members = [member_of(disk) for disk in drive.disks]
    common = {key: _common(member.get(key) for member in members) for key in ("model", "firmware", "transport", "link")}
    virtual = {"virtual": True} if any(map(is_virtual, drive.disks)) else {}
    return facts | common | virtual | {
        "serial": drive.serial,
        "composition": composition_words(drive.name),
        "members": members,
        "rotational": any(member["rotational"] for member in members),
    }  # fmt: skip


def member_of(disk: str) -> dict[str, Any]:
    record = manage.find_by_device(f"/dev/{disk}")
    facts = identity.describe(disk)
    if record is not None:
        facts |= DriveModel.from_mapping(record.name, record.model).describe()
    keys = ("serial", "model", "firmware", "capacity_bytes", "logical_block_bytes", "lba_format", "transport", "link",
            "manufacturer", "controller", "rotational", "lifetime_bytes_written", "life_used_pct")  # fmt: skip
    return {"node": f"/dev/{disk}", **{key: facts.get(key) for key in keys}}


def _common(values: Iterable[Any]) -> str | None:
    """Return the different values of the members, joined; None if no member reports one."""
    known = dict.fromkeys(str(value) for value in values if value is not None)
    return " + ".join(known) or None


def composition_words(name: str, sys_root: Path = Path("/sys")) -> str:
    """Return what a subject consists of, from the top to its drives, such as `md raid1 of 2 on 2 drives`."""
    levels, names = [], [name]
    while names and (names != [name] or kind_of(name, sys_root) != DRIVE.name):
        disks = [part for part in names if not directly_below(part, sys_root)]
        above = [part for part in names if part not in disks]
        words = list(dict.fromkeys(_words(part, sys_root) for part in above))
        if disks:
            words.append("1 drive" if len(disks) == 1 else f"{len(disks)} drives")
        levels.append(" and ".join(words))
        names = sorted({below for part in above for below in directly_below(part, sys_root)})
    return " on ".join(levels)


def _words(name: str, sys_root: Path) -> str:
    kind, directory = kind_of(name, sys_root), block_dir(name, sys_root)
    if kind == PARTITION.name:
        begin = extent_of(name, sys_root).begin
        return f"partition at byte {begin:,} (aligned to {format_amount(begin & -begin) if begin else 'the start'})"
    if kind == ARRAY.name:
        facts = {key: read_text(directory / "md" / key) for key in ("level", "raid_disks", "chunk_size", "layout")}
        chunk = int(facts["chunk_size"] or 0)
        parts = [f"md {facts['level']} of {facts['raid_disks']}"]
        parts += [f"chunk {format_amount(chunk)}"] if chunk else []
        parts += [f"layout {facts['layout']}"] if facts["level"] in ("raid5", "raid6", "raid10") else []
        bitmap = read_text(directory / "md/bitmap/location")
        if bitmap and facts["level"] != "raid0":
            parts.append(f"bitmap {'none' if bitmap == 'none' else 'internal'}")
        return ", ".join(parts)
    if kind == VOLUME.name:
        return " and ".join(dict.fromkeys(target_words(target) for target in _table(name))) or "mapping"
    return name


def target_words(target: Target) -> str:
    """Return a line of a mapping's table in words; numbers of the table are in sectors of 512 bytes."""
    words = target.arguments
    if target.kind == "striped":
        return f"striped over {words[0]}, chunk {format_amount(512 * int(words[1]))}"
    if target.kind == "crypt":
        return f"dm-crypt {words[0]}"
    if target.kind == "multipath":
        policies = ("round-robin", "queue-length", "service-time", "historical-service-time", "io-affinity")
        policy = next((word for word in words if word in policies), "unknown policy")
        return f"multipath over {len(target.devices)} paths, {policy}"
    if target.kind == "thin":
        return "thin volume"
    if target.kind == "thin-pool":
        return f"thin pool, block {format_amount(512 * int(words[2]))}"
    if target.kind == "raid":
        return f"dm-raid {words[0]}"
    return f"dm {target.kind}"


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
    found: dict[str, Any] = {
        **dict.fromkeys(("lba_formats", "link_max", "temperature_c", "life_used_pct", "spare_pct", "by_id")),
        **sysfs.describe(name),
        "model": _model(name, kind),
        "transport": {PARTITION.name: "part", VOLUME.name: "dm", ARRAY.name: "md"}[kind],
        **sysfs.blocks(name),
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
    for disk in subject.disks:
        if (reason := doubles.with_same_serial(disk, subject.serial(disk) or "")) is not None:
            return f"{reason}; {doubles.REMEDY_IN_LIST}"
    return None if found["pin"] else f"it has no path that does not change: {KINDS[kind].paths}"
