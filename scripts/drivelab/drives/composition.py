"""What a partition, volume or array consists of, down to its disks, and what else is on these disks; from sysfs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from drivelab.drives.sysfs import SECTOR_BYTES, block_dir, read_text
from drivelab.plan.subject_kinds import ARRAY, DRIVE, PARTITION, VOLUME

_LVM_GROUP = re.compile(r"LVM-.{32}")
_KPARTX = re.compile(r"part\d+-(.+)")


def kind_of(name: str, sys_root: Path = Path("/sys")) -> str:
    """Return the kind of a block device by its structure; a namespace is a `drive`."""
    directory = block_dir(name, sys_root)
    for kind, mark in ((PARTITION, "partition"), (VOLUME, "dm"), (ARRAY, "md")):
        if (directory / mark).exists():
            return kind.name
    return DRIVE.name


@dataclass(frozen=True)
class Extent:
    """The place of a partition on its drive, in bytes."""

    name: str
    begin: int
    length: int

    @property
    def end(self) -> int:
        return self.begin + self.length


@dataclass(frozen=True)
class Composition:
    """A block device and all devices below it."""

    name: str
    sys_root: Path = Path("/sys")

    @cached_property
    def legs(self) -> tuple[str, ...]:
        """Kernel names of all devices below, disks included, sorted."""
        found: set[str] = set()
        waiting = directly_below(self.name, self.sys_root)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += directly_below(name, self.sys_root)
        return tuple(sorted(found))

    @cached_property
    def disks(self) -> tuple[str, ...]:
        """Kernel names of the devices at the bottom, sorted; of a drive, the drive itself."""
        devices = (self.name, *self.legs)
        return tuple(sorted(name for name in devices if not directly_below(name, self.sys_root)))

    @cached_property
    def chain(self) -> frozenset[str]:
        """The device and all devices below it."""
        return frozenset((self.name, *self.legs))

    @cached_property
    def groups(self) -> frozenset[str]:
        """The volume groups and partitioned mappings that the device belongs to, see `group_of`."""
        return frozenset(group for name in self.chain if (group := group_of(name, self.sys_root)) is not None)

    def is_sibling(self, name: str) -> bool:
        """Return whether a mapping belongs to one of `groups`, but not to the device's own chain."""
        return name not in self.chain and group_of(name, self.sys_root) in self.groups

    def siblings(self) -> tuple[str, ...]:
        """Return the partitions and volumes beside the device on its disks: their contents stay untouched.

        Partitions of all devices of the chain, except of the device itself, and the volumes of `groups`.
        """
        beside = {part for leg in self.legs for part in partitions(leg, self.sys_root) if part not in self.chain}
        waiting = [*self.legs, *beside]
        while waiting:
            for above in above_of(waiting.pop(), self.sys_root):
                if above not in beside and self.is_sibling(above):
                    beside.add(above)
                    waiting.append(above)
        return tuple(sorted(beside))

    def overlap(self) -> str | None:
        """Return why partitions below the device share blocks with others, or None if they do not.

        The kernel accepts overlapping partitions. A disk that is used whole must have no partitions.
        """
        for leg in self.legs:
            extents = [extent_of(part, self.sys_root) for part in partitions(leg, self.sys_root)]
            own = [extent for extent in extents if extent.name in self.chain]
            if extents and self.chain.intersection(above_of(leg, self.sys_root)):
                return f"{leg} is used as a whole, but has partitions ({extents[0].name})"
            for extent in own:
                for other in extents:
                    if other is not extent and other.begin < extent.end and extent.begin < other.end:
                        return f"{extent.name} and {other.name} share blocks of {leg}"
        return None


def settings_of(name: str, sys_root: Path = Path("/sys")) -> tuple[str, ...]:
    """Return the devices whose settings in sysfs matter to a device: a mapping or array itself, and the disks below.

    A partition has the settings of its drive.
    """
    own = () if kind_of(name, sys_root) == PARTITION.name else (name,)
    return tuple(dict.fromkeys((*own, *Composition(name, sys_root).disks)))


def group_of(name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return the volume group of a logical volume, or the mapping that a mapped partition lies on; None for others.

    LVM and kpartx enter both in the UUID of a mapping: `LVM-` with the UUIDs of group and volume, each of 32
    characters, and `partN-` with the UUID of the mapping that has the partition table.
    """
    uuid = read_text(block_dir(name, sys_root) / "dm/uuid") or ""
    if match := _LVM_GROUP.match(uuid):
        return match[0]
    match = _KPARTX.fullmatch(uuid)
    return f"part-{match[1]}" if match else None


def partitions(name: str, sys_root: Path = Path("/sys")) -> list[str]:
    """Return the kernel names of a device's partitions, sorted."""
    return sorted(path.parent.name for path in block_dir(name, sys_root).glob("*/partition"))


def above_of(name: str, sys_root: Path = Path("/sys")) -> list[str]:
    """Return the mappings and arrays directly above a device, sorted."""
    return sorted(path.name for path in (block_dir(name, sys_root) / "holders").glob("*"))


def extent_of(name: str, sys_root: Path = Path("/sys")) -> Extent:
    """Return the place of a partition (Documentation/ABI/testing/sysfs-block: in sectors of 512 bytes)."""
    begin, length = (int(read_text(block_dir(name, sys_root) / file) or 0) for file in ("start", "size"))
    return Extent(name, begin * SECTOR_BYTES, length * SECTOR_BYTES)


def gaps(extents: Iterable[Extent], capacity_bytes: int) -> Iterator[Extent]:
    """Yield the parts of a disk that no partition covers, named `gap`; partition tables are in them."""
    begin = 0
    for extent in sorted(extents, key=lambda extent: extent.begin):
        if extent.begin > begin:
            yield Extent("gap", begin, extent.begin - begin)
        begin = max(begin, extent.end)
    if capacity_bytes > begin:
        yield Extent("gap", begin, capacity_bytes - begin)


def directly_below(name: str, sys_root: Path = Path("/sys")) -> list[str]:
    """Return the devices that a device directly consists of: of a partition its drive; none of a drive."""
    directory = block_dir(name, sys_root)
    if (directory / "partition").exists():
        return [directory.parent.name]
    return sorted(path.name for path in (directory / "slaves").glob("*"))
