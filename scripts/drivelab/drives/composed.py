"""Check a subject that is not a whole drive: its members, and what else uses the disks below it.

A partition, volume or array may be written to only if the sheet names every disk below it, and if nothing else on these
disks is in use. The devices that carry the subject hold each other; these holds are recognised one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.core.lock import exclusive
from drivelab.drives import device_mapper, holders, node
from drivelab.drives.composition import Composition, above_of, kind_of, partitions
from drivelab.drives.device_mapper import Mapping
from drivelab.drives.holders import Scope
from drivelab.drives.identifiers import actual_serial
from drivelab.drives.node import Node
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import block_dir, read_text, whole_dir
from drivelab.plan.drive_sheet import SheetRow
from drivelab.plan.subject_kinds import ARRAY, DRIVE, NAMESPACE, PARTITION, VOLUME

_RUNNING = {"clean", "active", "active-idle", "write-pending", "read-auto"}
"""States of an array that accepts writes (Documentation/admin-guide/md, array_state)."""
_WORDS = {
    DRIVE.name: "a whole drive",
    PARTITION.name: "a partition",
    VOLUME.name: "a device mapper volume",
    ARRAY.name: "an md array",
}


def is_composed(kind: str) -> bool:
    """Return whether subjects of a kind are not whole drives or namespaces."""
    return kind in (PARTITION.name, VOLUME.name, ARRAY.name)


def other_kind(kind: str, name: str, sys_root: Path = Path("/sys")) -> str | None:
    """Return in words what a device is, if it is not of the kind that the sheet gives it, else None."""
    actual = kind_of(name, sys_root)
    if kind == NAMESPACE.name and actual == DRIVE.name and not name.startswith("nvme"):
        return "no NVMe namespace"
    wanted = DRIVE.name if kind == NAMESPACE.name else kind
    return None if actual == wanted else _WORDS[actual]


@dataclass(frozen=True)
class Subject:
    """A composed subject with the kernel's view of everything on its disks."""

    name: str
    host: Host = Host()  # noqa: RUF009 - an immutable value
    serial: Callable[[str], str | None] = field(default=lambda disk: actual_serial(f"/dev/{disk}", disk))
    """Returns the serial number of a disk, given by kernel name."""
    table: Callable[[str], Mapping] = device_mapper.read
    """Returns a mapping with its table; raises OSError."""

    @cached_property
    def composition(self) -> Composition:
        return Composition(self.name, self.host.sys_root)

    @property
    def disks(self) -> tuple[str, ...]:
        return self.composition.disks

    @cached_property
    def siblings(self) -> tuple[str, ...]:
        """Partitions and volumes beside the subject on its disks."""
        return self.composition.siblings()

    def holdable(self) -> list[str]:
        """Return the siblings that no mapping or array holds."""
        return [name for name in self.siblings if not above_of(name, self.host.sys_root)]

    def wrong_members(self, members: Sequence[str]) -> str | None:
        """Return why the disks below are not exactly those with the serial numbers `members`, or None."""
        serials = {disk: self.serial(disk) for disk in self.disks}
        if self.disks == (self.name,):
            return f"no disk below {self.name} is known"
        if unknown := [disk for disk, serial in serials.items() if not serial]:
            return f"the disk {unknown[0]} below {self.name} has no serial number, so drivelab cannot identify it"
        if extra := [f"{serial} ({disk})" for disk, serial in serials.items() if serial not in members]:
            return f"{self.name} also lies on the disk {', '.join(extra)}, which 'members' does not name"
        if missing := sorted(set(members) - set(serials.values())):
            return f"{self.name} does not lie on the disk {', '.join(missing)}, which 'members' names"
        return None

    def unfit(self) -> str | None:
        """Return why the subject cannot be tested at all, even if nothing uses it, or None."""
        for name in sorted(self.composition.chain):
            directory = block_dir(name, self.host.sys_root)
            if read_text(directory / "ro") == "1":
                return f"{name} is read-only"
            if read_text(directory / "dm/suspended") == "1":
                return f"{name} is suspended; dmsetup resume continues it"
            state = read_text(directory / "md/array_state")
            if (directory / "md").exists() and state not in _RUNNING:
                return f"the array {name} is {state or 'in an unknown state'}"
            if read_text(whole_dir(name, self.host.sys_root) / "queue/zoned") == "host-managed":
                return f"{name} is a host-managed zoned device, which accepts sequential writes only"
            if kind_of(name, self.host.sys_root) == DRIVE.name and name not in self.disks:
                return f"{name} consists of other devices in a way that drivelab does not know (bcache or similar)"
        return self.composition.overlap() or self._unfit_tables()

    def _unfit_tables(self) -> str | None:
        """Check the tables of all mappings below and beside the subject."""
        sys_root = self.host.sys_root
        names = {*self.composition.chain, *self.siblings}
        mapped = [name for name in sorted(names) if kind_of(name, sys_root) == VOLUME.name]
        try:
            mappings = {name: self.table(name) for name in mapped}
        except OSError as error:
            return f"the table of its mappings cannot be read ({error})"
        own = {name: mapping for name, mapping in mappings.items() if name in self.composition.chain}
        if (reason := device_mapper.unfit(self.name, own)) is not None:
            return reason
        for leg in self.composition.legs:
            numbers = read_text(block_dir(leg, sys_root) / "dev") or ""
            above = [mappings[name] for name in above_of(leg, sys_root) if name in mappings]
            for first in above:
                for second in above:
                    if first is not second and first.name in own and _share(first, second, numbers):
                        return f"{first.name} and {second.name} use the same blocks of {leg}"
        return None

    def in_use(self) -> str | None:
        """Return why the subject, its disks or anything beside it is in use by the kernel's files, or None."""
        if above := above_of(self.name, self.host.sys_root):
            return f"{self.name} is held by {', '.join(above)} (device mapper, md or similar)"
        twins = [twin for disk in self.disks for twin in holders.twins(disk, self.host) if twin not in self.disks]
        paths = tuple(dict.fromkeys((*self.disks, *twins)))
        inside = [part for path in (*paths, self.name) for part in partitions(path, self.host.sys_root)]
        nodes = tuple(dict.fromkeys((*paths, *inside, *sorted(self.composition.chain), *self.siblings)))
        stacked = frozenset(name for name in (*self.composition.chain, *self.siblings) if name not in paths)
        return holders.in_use(Scope(paths, nodes, self.host, stacked))


def lock_below(row: SheetRow, name: str, stack: ExitStack) -> list[Node]:
    """Lock the disks below a subject, and return those of its siblings, open, that can be held with O_EXCL.

    The kernel holds what carries the subject. Raises UserError if another drivelab process uses one of the disks.
    """
    subject = Subject(name)
    try:
        for disk in subject.disks:
            opened = stack.enter_context(node.opened(f"/dev/{disk}"))
            stack.enter_context(exclusive(Path(opened.path), row.drive, label=opened.device))
        return [stack.enter_context(node.opened(f"/dev/{sibling}")) for sibling in subject.holdable()]
    except OSError as error:
        raise UserError(
            f"{row.source}: {row.kind} '{row.drive}': a device on its disks cannot be opened ({error}). Nothing was "
            "written. Check dmesg."
        ) from None


def _share(first: Mapping, second: Mapping, numbers: str) -> bool:
    try:
        return device_mapper.shared_blocks(first, second, numbers)
    except (ValueError, IndexError, ZeroDivisionError):  # a table that drivelab cannot read may mean any block
        return True
