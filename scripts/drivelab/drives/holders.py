"""Who uses a block device, from sysfs and proc: a walk over its partitions and all that may stand on them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from drivelab.drives.sysfs import block_dir, read_text

SYSTEM_MOUNTS = ("/", "/usr", "/var", "/boot", "/boot/efi")
"""What the host needs to live: no drive below one of them is ever tested."""
_NO_DEVICE = ("", None)
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Host:
    """The file systems that the kernel describes itself in; others stand in for them in tests."""

    sys_root: Path = Path("/sys")
    proc_root: Path = Path("/proc")


@dataclass(frozen=True)
class _Subject:
    """A drive, with all that is the same medium: its partitions, and other paths to it with theirs."""

    name: str
    paths: tuple[str, ...]
    """The drive and its twins."""
    nodes: tuple[str, ...]
    """Those and their partitions."""
    host: Host


def holder(name: str, host: Host) -> str | None:
    """Why the drive `name` is in use as far as the kernel's files tell, in words; None if they tell of no use.

    What is asked of the drive is asked of its partitions too (what is mounted from sda1 makes sda in use), and of
    other paths to the same medium.
    """
    paths = (name, *twins(name, host))
    nodes = tuple(node for path in paths for node in (path, *partitions(path, host)))
    subject = _Subject(name, paths, nodes, host)
    for question in _QUESTIONS:
        if (reason := question(subject)) is not None:
            return reason
    return None


def partitions(name: str, host: Host) -> list[str]:
    """Kernel names of the partitions of a drive, in order."""
    return sorted(path.parent.name for path in block_dir(name, host.sys_root).glob("*/partition"))


def twins(name: str, host: Host) -> list[str]:
    """Other devices with the same medium: a second port without multipath, a second loop device over one file."""
    own = _medium(name, host)
    if own is None:
        return []
    others = sorted(path.name for path in (host.sys_root / "class/block").glob("*") if path.name != name)
    return [other for other in others if _medium(other, host) == own]


def _medium(name: str, host: Host) -> tuple[str, str] | None:
    """What tells one medium from all others: the file of a loop device, a world-wide name; None if nothing does."""
    directory = block_dir(name, host.sys_root)
    if (directory / "partition").exists():
        return None
    for file in ("loop/backing_file", "wwid", "device/wwid"):
        if text := read_text(directory / file):
            return file.rpartition("/")[2], text
    return None


def _not_a_drive(subject: _Subject) -> str | None:
    directory = block_dir(subject.name, subject.host.sys_root)
    if (directory / "partition").exists():
        return f"{subject.name} is a partition of {directory.parent.name}; name the whole drive"
    below = _names(directory / "slaves")
    if below or (directory / "dm").exists() or (directory / "md").exists():
        return f"{subject.name} is no drive but made of {', '.join(below) or 'others'} (device mapper, md or similar)"
    if read_text(directory / "ro") == "1":
        return f"{subject.name} is read-only"
    return None


def _system_disk(subject: _Subject) -> str | None:
    for mount_point, disks in _system_disks(subject.host):
        for path in subject.paths:
            if path in disks:
                return f"{path} carries {mount_point} of the running system"
    return None


def _system_disks(host: Host) -> Iterator[tuple[str, set[str]]]:
    for numbers, mount_point, source, _ in mounts(host):
        if mount_point in SYSTEM_MOUNTS:
            names = {found for found in (_name_of(numbers, host), _source_name(source, host)) if found}
            yield mount_point, {disk for one in names for disk in _disks_below(one, host)}


def _disks_below(name: str, host: Host) -> Iterator[str]:
    """Whole disks that a device stands on, through partitions, device mapper and md."""
    directory = block_dir(name, host.sys_root)
    if (directory / "partition").exists():
        yield from _disks_below(directory.parent.name, host)
        return
    yield name
    for below in _names(directory / "slaves"):
        yield from _disks_below(below, host)


def _mounted(subject: _Subject) -> str | None:
    host = subject.host
    numbers = {read_text(block_dir(node, host.sys_root) / "dev"): node for node in subject.nodes}
    for number, mount_point, source, _ in mounts(host):
        node = numbers.get(number) or next((one for one in subject.nodes if one == _source_name(source, host)), None)
        if node is not None:
            return f"{node} is mounted on {mount_point}"
    return None


def _swap(subject: _Subject) -> str | None:
    for line in (read_text(subject.host.proc_root / "swaps") or "").splitlines()[1:]:
        if line.strip() and (node := _source_name(unescaped(line.split()[0]), subject.host)) in subject.nodes:
            return f"{node} is swap space"
    return None


def _held(subject: _Subject) -> str | None:
    for node in subject.nodes:
        if above := _names(block_dir(node, subject.host.sys_root) / "holders"):
            return f"{node} is held by {', '.join(above)} (device mapper, md or similar)"
    return None


def _btrfs(subject: _Subject) -> str | None:
    """A mounted btrfs names only one of its devices in mountinfo; sysfs names all."""
    for member in sorted((subject.host.sys_root / "fs/btrfs").glob("*/devices/*")):
        if member.name in subject.nodes:
            return f"{member.name} is a member of the mounted btrfs {member.parent.parent.name}"
    return None


def _loop(subject: _Subject) -> str | None:
    for backing in sorted((subject.host.sys_root / "block").glob("loop*/loop/backing_file")):
        if _source_name(read_text(backing) or "", subject.host) in subject.nodes:
            return f"{backing.parent.parent.name} is a loop device over it"
    return None


def _exported(subject: _Subject) -> str | None:
    """Targets of NVMe over fabrics and of LIO open their devices without O_EXCL and without a process."""
    config = subject.host.sys_root / "kernel/config"
    targets = (("nvmet/subsystems/*/namespaces/*/device_path", "NVMe target"), ("target/core/*/*/udev_path", "target"))
    for pattern, kind in targets:
        for file in sorted(config.glob(pattern)):
            if _source_name(read_text(file) or "", subject.host) in subject.nodes:
                return f"it is exported to other hosts by the {kind} {file.parent.relative_to(config)}"
    return None


def _writer(subject: _Subject) -> str | None:
    """A process that has the drive open for writing without O_EXCL: a virtual machine's disk, a running dd.

    By the open file itself, not by its path: a container has its own names, and a node may be gone since.
    """
    host = subject.host
    numbers = {("b", read_text(block_dir(node, host.sys_root) / "dev")) for node in subject.nodes}
    numbers |= {("c", read_text(file)) for path in subject.paths for file in _character_devices(path, host)}
    for pid, descriptor, target, device in _open_devices(host):
        named = device is None and _source_name(target, host) in subject.nodes
        if (named or device in numbers) and writes(host.proc_root / pid / "fdinfo" / descriptor):
            command = read_text(host.proc_root / pid / "comm") or "unknown"
            return f"process {pid} ({command}) has {target} open for writing"
    return None


def _character_devices(name: str, host: Host) -> Iterator[Path]:
    """`dev` files of what passes commands on to the drive: sg and bsg of SCSI, ng of NVMe."""
    directory = block_dir(name, host.sys_root)
    for pattern in ("device/scsi_generic/*/dev", "device/bsg/*/dev"):
        yield from directory.glob(pattern)
    if name.startswith("nvme"):
        yield host.sys_root / "class/nvme-generic" / name.replace("nvme", "ng", 1) / "dev"


def open_files(host: Host, near: str = "") -> Iterator[tuple[str, str, str]]:
    """Process, file descriptor and its link for what other processes have open; it may be ten thousands of files.

    Without those on slow mounts, but for the mount that `near` lies on.
    """
    own = str(os.getpid())
    slow = tuple(mount for mount in _slow_mounts(host) if not near.startswith(mount))
    for pid in filter(str.isdigit, os.listdir(host.proc_root)):  # noqa: PTH208 - strings are ten times quicker
        folder = f"{host.proc_root}/{pid}/fd"
        try:
            descriptors = os.listdir(folder) if pid != own else []  # noqa: PTH208
        except OSError:  # the process is gone, or another user's
            continue
        for descriptor in descriptors:
            link = f"{folder}/{descriptor}"
            try:
                if slow and os.readlink(link).startswith(slow):  # noqa: PTH115
                    continue
            except OSError:  # the file was closed
                continue
            yield pid, descriptor, link


def _open_devices(host: Host) -> Iterator[tuple[str, str, str, tuple[str, str | None] | None]]:
    """Process, file descriptor, path and numbers of open devices."""
    for pid, descriptor, link in open_files(host):
        try:
            device = _device_numbers(link)
            if device != _NO_DEVICE:
                yield pid, descriptor, os.readlink(link), device  # noqa: PTH115
        except OSError:  # the file was closed
            continue


def _device_numbers(link: str) -> tuple[str, str | None] | None:
    """`b` or `c` with `major:minor` of an open file; None where the file is not to be had, as in a pretended proc."""
    try:
        found = os.stat(link)  # noqa: PTH116
    except FileNotFoundError:
        return None
    kind = "b" if stat.S_ISBLK(found.st_mode) else "c" if stat.S_ISCHR(found.st_mode) else ""
    return (kind, f"{os.major(found.st_rdev)}:{os.minor(found.st_rdev)}") if kind else _NO_DEVICE


def _slow_mounts(host: Host) -> tuple[str, ...]:
    """Network and FUSE file systems: to ask for a file there may take for ever, and no devices are opened there."""
    kinds = ("nfs", "cifs", "smb", "ceph", "9p", "fuse.")
    return tuple(f"{point.rstrip('/')}/" for _, point, _, kind in mounts(host) if kind.startswith(kinds))


def writes(fdinfo: Path) -> bool:
    """Access mode of an open file (proc_pid_fdinfo(5): flags are octal)."""
    for line in (read_text(fdinfo) or "").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


_QUESTIONS: tuple[Callable[[_Subject], str | None], ...] = (
    _not_a_drive, _system_disk, _mounted, _swap, _held, _btrfs, _loop, _exported, _writer,
)  # fmt: skip


def mounts(host: Host) -> Iterator[tuple[str, str, str, str]]:
    """`major:minor`, mount point, source and kind of every mount of this process (proc_pid_mountinfo(5))."""
    for line in (read_text(host.proc_root / "self/mountinfo") or "").splitlines():
        fields = line.split()
        rest = fields[fields.index("-") + 1 :]
        yield fields[2], unescaped(fields[4]), unescaped(rest[1]), rest[0]


def _source_name(path: str, host: Host) -> str | None:
    """Kernel name of a device given by its path in /dev, links followed where it exists."""
    if not path.startswith("/dev/"):
        return None
    try:
        number = Path(path).stat()
    except OSError:
        return Path(path).name
    if not stat.S_ISBLK(number.st_mode):
        return None
    numbers = f"{os.major(number.st_rdev)}:{os.minor(number.st_rdev)}"
    return _name_of(numbers, host) or Path(path).name


def _name_of(numbers: str, host: Host) -> str | None:
    link = host.sys_root / "dev/block" / numbers
    return link.resolve().name if link.exists() else None


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*"))


def unescaped(field: str) -> str:
    """Spaces and the like are octal in the kernel's tables."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), field)
