"""Find what uses a block device, from sysfs and proc: its partitions and everything stacked on them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from drivelab.core.files import mount_lines
from drivelab.core.sight import Unseen
from drivelab.drives import composition, exports
from drivelab.drives.composition import Composition
from drivelab.drives.exports import Export
from drivelab.drives.openers import Host, Wanted, writer
from drivelab.drives.sysfs import block_dir, read_text

SYSTEM_MOUNTS = ("/", "/usr", "/var", "/boot", "/boot/efi")
"""Mount points that the host needs: drivelab never tests a drive below one of them."""
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Scope:
    """What must not be in use: everything on the same media as the subject."""

    paths: tuple[str, ...]
    """Whole drives: of a drive, the drive itself; with their twins."""
    nodes: tuple[str, ...]
    """`paths`, their partitions, and what is stacked on them."""
    host: Host
    stacked: frozenset[str] = field(default=frozenset())
    """Mappings and arrays that may hold nodes, because they are nodes themselves; none of a drive."""


def holder(name: str, host: Host) -> str | None:
    """Return why the drive `name` is in use according to the kernel's files, or None if they show no use.

    Each check covers the drive, its partitions (a mount of sda1 makes sda in use) and other paths to the same medium.
    """
    paths = (name, *twins(name, host))
    nodes = tuple(node for path in paths for node in (path, *partitions(path, host)))
    return _not_a_drive(name, host) or in_use(Scope(paths, nodes, host))


def in_use(scope: Scope) -> str | None:
    """Return why a node of a scope is in use according to the kernel's files, or None if they show no use.

    A use that is seen comes before the reason why another may be unseen.
    """
    unseen: str | None = None
    for check in _CHECKS:
        if (reason := check(scope)) is not None:
            if not isinstance(reason, Unseen):
                return reason
            unseen = unseen or reason
    return unseen


def used_by_own_target(name: str, host: Host) -> str | None:
    """Return why the device behind a namespace of this host's own target (nvmet) is in use, or None."""
    uuid = read_text(block_dir(name, host.sys_root) / "uuid")
    for file in sorted((host.sys_root / "kernel/config").glob("nvmet/subsystems/*/namespaces/*/device_uuid")):
        if uuid is None or read_text(file) != uuid:
            continue
        for behind in sorted(_names_of_node(read_text(file.parent / "device_path") or "", host)):
            chain = Composition(behind, host.sys_root).chain
            nodes = tuple(node for path in sorted(chain) for node in (path, *partitions(path, host)))
            scope = Scope(tuple(chain), nodes, host, chain)
            for check in _CHECKS:
                if check is not _exported and (reason := check(scope)) is not None:
                    return f"this host exports it from {behind}, and {reason}"
    return None


def partitions(name: str, host: Host) -> list[str]:
    """Return the kernel names of a drive's partitions, sorted."""
    return composition.partitions(name, host.sys_root)


def twins(name: str, host: Host) -> list[str]:
    """Return other devices with the same medium: a second port without multipath, a second loop device over one file.

    Native NVMe multipath hides the paths below its device (nvme0c0n1). They have no node, so nothing can use them.
    """
    own = _medium(name, host)
    if own is None:
        return []
    folders = sorted((host.sys_root / "class/block").glob("*"))
    others = [path.name for path in folders if path.name != name and read_text(path / "hidden") != "1"]
    return [other for other in others if _medium(other, host) == own]


def _medium(name: str, host: Host) -> tuple[str, object] | None:
    """Return what identifies a medium: the file of a loop device, or a world-wide name; None if neither is known."""
    directory = block_dir(name, host.sys_root)
    if (directory / "partition").exists():
        return None
    if path := read_text(directory / "loop/backing_file"):
        try:
            behind = host.backing(name)
        except OSError:  # no permission to ask the kernel
            return "loop", path
        return ("loop", behind.place) if behind is not None else None
    for file in ("wwid", "device/wwid"):
        if text := read_text(directory / file):
            return "wwid", text
    return None


def _not_a_drive(name: str, host: Host) -> str | None:
    directory = block_dir(name, host.sys_root)
    if (directory / "partition").exists():
        return f"{name} is a partition of {directory.parent.name}; name the whole drive"
    below = _names(directory / "slaves")
    if below or (directory / "dm").exists() or (directory / "md").exists():
        members = ", ".join(below) or "others"
        return f"{name} is not a drive; it consists of {members} (device mapper, md or similar)"
    if read_text(directory / "ro") == "1":
        return f"{name} is read-only"
    return None


def _system_disk(scope: Scope) -> str | None:
    for mount_point, disks in _system_disks(scope.host):
        for path in scope.paths:
            if path in disks:
                return f"{path} contains {mount_point} of the running system"
    return None


def _system_disks(host: Host) -> Iterator[tuple[str, set[str]]]:
    for numbers, mount_point, source, _ in mounts(host):
        if mount_point in SYSTEM_MOUNTS:
            names = _names_of_node(source, host) | {name for name in [name_of(numbers, host)] if name}
            yield mount_point, {below for name in names for below in Composition(name, host.sys_root).chain}


def _mounted(scope: Scope) -> str | None:
    host = scope.host
    numbers = {read_text(block_dir(node, host.sys_root) / "dev"): node for node in scope.nodes}
    for number, mount_point, source, _ in mounts(host):
        node = numbers.get(number) or next(iter(_names_of_node(source, host).intersection(scope.nodes)), None)
        if node is not None:
            return f"{node} is mounted on {mount_point}"
    return None


def _swap(scope: Scope) -> str | None:
    for line in (read_text(scope.host.proc_root / "swaps") or "").splitlines()[1:]:
        for node in _names_of_node(unescaped(line.split()[0]), scope.host) if line.strip() else ():
            if node in scope.nodes:
                return f"{node} is swap space"
    return None


def _held(scope: Scope) -> str | None:
    for node in scope.nodes:
        above = _names(block_dir(node, scope.host.sys_root) / "holders")
        if others := [name for name in above if name not in scope.stacked]:
            return f"{node} is held by {', '.join(others)} (device mapper, md or similar)"
    return None


def _btrfs(scope: Scope) -> str | None:
    """Check btrfs in sysfs, which lists all member devices; mountinfo lists only one."""
    for member in sorted((scope.host.sys_root / "fs/btrfs").glob("*/devices/*")):
        if member.name in scope.nodes:
            return f"{member.name} is a member of the mounted btrfs {member.parent.parent.name}"
    return None


def _loop(scope: Scope) -> str | None:
    host = scope.host
    numbers = {read_text(block_dir(node, host.sys_root) / "dev") for node in scope.nodes}
    for file in sorted((host.sys_root / "block").glob("loop*/loop/backing_file")):
        name = file.parent.parent.name
        try:
            behind = host.backing(name)
        except OSError:  # no permission to ask the kernel
            behind = None
        by_path = _names_of_node(read_text(file) or "", host).intersection(scope.nodes)
        if by_path or (behind is not None and behind.device in numbers):
            return f"{name} is a loop device over it"
    return None


def _exported(scope: Scope) -> str | None:
    def fits(export: Export) -> bool:
        names = {*export.names, *_names_of_node(export.path, scope.host), name_of(export.numbers, scope.host)}
        return not names.isdisjoint(scope.nodes)

    return exports.use(scope.host, fits)


def _writer(scope: Scope) -> str | None:
    """Find a process that has the drive open for writing, or mapped, without O_EXCL: a virtual machine, a dd."""
    host = scope.host
    devices = {("b", read_text(block_dir(node, host.sys_root) / "dev") or "") for node in scope.nodes}
    devices |= {("c", read_text(file) or "") for path in scope.paths for file in _character_devices(path, host)}
    return writer(Wanted(frozenset(devices), paths=frozenset(f"/dev/{node}" for node in scope.nodes)), host)


def _character_devices(name: str, host: Host) -> Iterator[Path]:
    """Yield the `dev` files of the pass-through devices of a drive: sg and bsg for SCSI, ng for NVMe."""
    directory = block_dir(name, host.sys_root)
    for pattern in ("device/scsi_generic/*/dev", "device/bsg/*/dev"):
        yield from directory.glob(pattern)
    if name.startswith("nvme"):
        yield host.sys_root / "class/nvme-generic" / name.replace("nvme", "ng", 1) / "dev"


_CHECKS: tuple[Callable[[Scope], str | None], ...] = (
    _system_disk, _mounted, _swap, _held, _btrfs, _loop, _exported, _writer,
)  # fmt: skip


def mounts(host: Host) -> Iterator[tuple[str, str, str, str]]:
    """Yield `major:minor`, mount point, source and type of every mount of this process (proc_pid_mountinfo(5))."""
    for fields in mount_lines(host.proc_root):
        rest = fields[fields.index("-") + 1 :]
        yield fields[2], unescaped(fields[4]), unescaped(rest[1]), rest[0]


def _names_of_node(path: str, host: Host) -> set[str]:
    """Return the kernel names for the path of a node: from the last part of a /dev path, and from the node's number.

    The two names differ if the node was replaced after a mount or an export by path; then either may be meant.
    A node may be outside /dev, for example in a container's folder.
    """
    if not path.startswith("/"):
        return set()
    by_path = {Path(path).name} if path.startswith("/dev/") else set()
    try:
        file = host.look(path)
    except OSError:
        return by_path
    if file.kind != "b":
        return set()
    by_number = name_of(file.numbers, host)
    return by_path | ({by_number} if by_number is not None else set())


def name_of(numbers: str, host: Host) -> str | None:
    """Return the kernel name of the block device with a number `major:minor`, or None if there is none."""
    link = host.sys_root / "dev/block" / numbers
    return link.resolve().name if numbers and link.exists() else None


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*"))


def unescaped(field: str) -> str:
    """Decode the octal escapes that the kernel's tables use for spaces and similar characters."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), field)
