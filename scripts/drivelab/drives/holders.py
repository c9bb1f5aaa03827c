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
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Host:
    """The file systems that the kernel describes itself in; others stand in for them in tests."""

    sys_root: Path = Path("/sys")
    proc_root: Path = Path("/proc")


def holder(name: str, host: Host) -> str | None:
    """Why the drive `name` is in use as far as the kernel's files tell, in words; None if they tell of no use.

    What is asked of the drive is asked of its partitions too: what is mounted from sda1 makes sda in use.
    """
    nodes = [name, *partitions(name, host)]
    for question in _QUESTIONS:
        if (reason := question(name, nodes, host)) is not None:
            return reason
    return None


def partitions(name: str, host: Host) -> list[str]:
    """Kernel names of the partitions of a drive, in order."""
    return sorted(path.parent.name for path in block_dir(name, host.sys_root).glob("*/partition"))


def _not_a_drive(name: str, nodes: list[str], host: Host) -> str | None:
    directory = block_dir(name, host.sys_root)
    if (directory / "partition").exists():
        return f"{name} is a partition of {directory.parent.name}; name the whole drive"
    below = _names(directory / "slaves")
    if below or (directory / "dm").exists() or (directory / "md").exists():
        return f"{name} is no drive but made of {', '.join(below) or 'others'} (device mapper, md or similar)"
    if read_text(directory / "ro") == "1":
        return f"{name} is read-only"
    return None


def _system_disk(name: str, nodes: list[str], host: Host) -> str | None:
    for mount_point, disks in _system_disks(host):
        if name in disks:
            return f"{name} carries {mount_point} of the running system"
    return None


def _system_disks(host: Host) -> Iterator[tuple[str, set[str]]]:
    for numbers, mount_point, source in mounts(host):
        if mount_point in SYSTEM_MOUNTS:
            names = {found for found in (_name_of(numbers, host), _source_name(source, host)) if found}
            yield mount_point, {disk for one in names for disk in _disks_below(one, host)}


def _disks_below(name: str, host: Host) -> Iterator[str]:
    """Whole disks that a device stands on: through partitions, device mapper, md and loop devices' files."""
    directory = block_dir(name, host.sys_root)
    if (directory / "partition").exists():
        yield from _disks_below(directory.parent.name, host)
        return
    yield name
    for below in _names(directory / "slaves"):
        yield from _disks_below(below, host)


def _mounted(name: str, nodes: list[str], host: Host) -> str | None:
    numbers = {read_text(block_dir(node, host.sys_root) / "dev"): node for node in nodes}
    for number, mount_point, source in mounts(host):
        node = numbers.get(number) or next((one for one in nodes if one == _source_name(source, host)), None)
        if node is not None:
            return f"{node} is mounted on {mount_point}"
    return None


def _swap(name: str, nodes: list[str], host: Host) -> str | None:
    for line in (read_text(host.proc_root / "swaps") or "").splitlines()[1:]:
        if line.strip() and (node := _source_name(_unescaped(line.split()[0]), host)) in nodes:
            return f"{node} is swap space"
    return None


def _held(name: str, nodes: list[str], host: Host) -> str | None:
    for node in nodes:
        if above := _names(block_dir(node, host.sys_root) / "holders"):
            return f"{node} is held by {', '.join(above)} (device mapper, md or similar)"
    return None


def _btrfs(name: str, nodes: list[str], host: Host) -> str | None:
    """A mounted btrfs names only one of its devices in mountinfo; sysfs names all."""
    for member in sorted((host.sys_root / "fs/btrfs").glob("*/devices/*")):
        if member.name in nodes:
            return f"{member.name} is a member of the mounted btrfs {member.parent.parent.name}"
    return None


def _loop(name: str, nodes: list[str], host: Host) -> str | None:
    for backing in sorted((host.sys_root / "block").glob("loop*/loop/backing_file")):
        if _source_name(read_text(backing) or "", host) in nodes:
            return f"{backing.parent.parent.name} is a loop device over it"
    return None


def _writer(name: str, nodes: list[str], host: Host) -> str | None:
    """A process that has the drive open for writing without O_EXCL: a virtual machine's disk, a running dd."""
    ours: dict[str, bool] = {}
    for pid, descriptor, target in _open_devices(host):
        if target not in ours:
            ours[target] = _source_name(target, host) in nodes
        if ours[target] and _writes(host.proc_root / pid / "fdinfo" / descriptor):
            command = read_text(host.proc_root / pid / "comm") or "unknown"
            return f"process {pid} ({command}) has {target} open for writing"
    return None


def _open_devices(host: Host) -> Iterator[tuple[str, str, str]]:
    """Process, file descriptor and path of every open file in /dev; there may be ten thousands of files."""
    own = str(os.getpid())
    for pid in filter(str.isdigit, os.listdir(host.proc_root)):  # noqa: PTH208 - plain strings are ten times quicker
        folder = f"{host.proc_root}/{pid}/fd"
        try:
            descriptors = os.listdir(folder) if pid != own else []  # noqa: PTH208
        except OSError:  # the process is gone, or another user's
            continue
        for descriptor in descriptors:
            try:
                target = os.readlink(f"{folder}/{descriptor}")  # noqa: PTH115
            except OSError:  # the file was closed
                continue
            if target.startswith("/dev/"):
                yield pid, descriptor, target


def _writes(fdinfo: Path) -> bool:
    """Access mode of an open file (proc_pid_fdinfo(5): flags are octal)."""
    for line in (read_text(fdinfo) or "").splitlines():
        if line.startswith("flags:"):
            return int(line.split()[1], 8) & os.O_ACCMODE != os.O_RDONLY
    return False


_QUESTIONS: tuple[Callable[[str, list[str], Host], str | None], ...] = (
    _not_a_drive, _system_disk, _mounted, _swap, _held, _btrfs, _loop, _writer,
)  # fmt: skip


def mounts(host: Host) -> Iterator[tuple[str, str, str]]:
    """`major:minor`, mount point and source of every mount of this process (proc_pid_mountinfo(5))."""
    for line in (read_text(host.proc_root / "self/mountinfo") or "").splitlines():
        fields = line.split()
        yield fields[2], _unescaped(fields[4]), _unescaped(fields[fields.index("-") + 2])


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


def _unescaped(field: str) -> str:
    """Spaces and the like are octal in the kernel's tables."""
    return _OCTAL.sub(lambda found: chr(int(found[1], 8)), field)
