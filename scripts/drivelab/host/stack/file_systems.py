"""Find the mount of a path, and say what its file system does to measured numbers."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from drivelab.core.files import mount_lines
from drivelab.drives.holders import unescaped
from drivelab.drives.openers import Host
from drivelab.drives.sysfs import read_text

MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})
KERNEL = frozenset({
    "autofs", "binfmt_misc", "bpf", "cgroup", "cgroup2", "configfs", "debugfs", "devpts", "efivarfs", "fusectl",
    "mqueue", "nsfs", "proc", "pstore", "securityfs", "selinuxfs", "sysfs", "tracefs",
})  # fmt: skip
"""File systems whose files the kernel computes."""
NETWORK = {
    "nfs": "NFS", "nfs4": "NFS", "cifs": "SMB", "smb3": "SMB", "smbfs": "SMB", "ceph": "CephFS", "lustre": "Lustre",
    "beegfs": "BeeGFS", "gpfs": "GPFS", "afs": "AFS", "orangefs": "OrangeFS", "fuse.sshfs": "SSHFS",
    "fuse.glusterfs": "GlusterFS", "fuse.ceph-fuse": "CephFS", "fuse.s3fs": "S3", "fuse.rclone": "rclone",
    "fuse.davfs": "WebDAV", "fuse.juicefs": "JuiceFS", "davfs": "WebDAV",
    "9p": "a folder of the host, shared over 9P", "virtiofs": "a folder of the host, shared over virtiofs",
    "vboxsf": "a folder of the host, shared by VirtualBox",
    "fuse.vmhgfs-fuse": "a folder of the host, shared by VMware",
}  # fmt: skip
_SHOWN_OPTIONS = re.compile(r"no(rel|di|strict)?atime|relatime|strictatime|lazytime|discard(=.*)?|ro|sync")
_FOLDER_FLAGS = {0x4: "folder:compressed", 0x8: "sync", 0x800: "folder:encrypted", 0x4000: "data=journal",
                 0x800000: "folder:nocow"}  # fmt: skip
"""Flags of chattr(1) (linux/fs.h, FS_*_FL), as options that the table below knows."""
_FS_IOC_GETFLAGS = 0x80086601


class Mount(NamedTuple):
    """A line of proc_pid_mountinfo(5)."""

    id: str
    parent: str
    numbers: str
    """`major:minor`: of the block device, or anonymous."""
    point: str
    kind: str
    source: str
    options: tuple[str, ...]
    """Mount options, then those of the file system."""


class Caution(NamedTuple):
    """A property of a file system that changes what a measurement means."""

    kinds: frozenset[str]
    """Types of file systems; empty for all."""
    option: str
    """Regular expression of an option that must be set; empty for none."""
    unless: str
    """Regular expression of an option that must not be set; empty for none."""
    sentence: str


def _row(kinds: str, option: str, sentence: str, unless: str = "") -> Caution:
    return Caution(frozenset(kinds.split()), option, unless, sentence)


_NOT_COPIED = r"nodatacow|folder:nocow"
CAUTIONS = (
    _row(
        "btrfs",
        "",
        "It copies on write: a small overwrite also writes metadata, and files become fragmented. From Linux 6.14 to "
        "7.2, direct writes to files with checksums pass through the page cache.",
        _NOT_COPIED,
    ),
    _row("zfs bcachefs nilfs2", "", "It copies on write: a small overwrite also writes metadata."),
    _row("btrfs", "", "It computes and verifies checksums, which costs CPU time.", rf"nodatasum|{_NOT_COPIED}"),
    _row("zfs bcachefs", "", "It computes and verifies checksums, which costs CPU time."),
    _row(
        "zfs",
        "",
        "It caches in memory of its own (the ARC), before OpenZFS 2.3 also with direct I/O. It may compress; "
        "`zfs get compression,recordsize,sync` shows this.",
    ),
    _row("f2fs", "", "It is log-structured: random writes reach the drive as sequential writes."),
    _row("btrfs", r"compress(-force)?(=(?!none|no).*)?", "It compresses ({option}), so data that compress look fast."),
    _row("bcachefs", r"(background_)?compression=(?!none).*",
         "It compresses ({option}), so data that compress look fast."),
    _row("", r"folder:compressed", "Files of this folder are compressed, so data that compress look fast."),
    _row("squashfs erofs", "", "It is compressed and read-only."),
    _row("", r"folder:encrypted", "Files of this folder are encrypted, which costs CPU time."),
    _row("ecryptfs fuse.gocryptfs fuse.encfs fuse.cryfs", "", "It encrypts each file, which costs CPU time."),
    _row(
        "ext4 ext3",
        r"data=journal",
        "It writes all data twice (data=journal), and direct I/O passes through the page cache.",
    ),
    _row("", r"nobarrier|barrier=0|fsync_mode=nobarrier",
         "It sends no flushes to the drive ({option}), so commits look fast and a power loss can destroy data."),
    _row("", r"sync|wsync", "It is mounted or marked as synchronous: each write waits for the drive."),
    _row("", r"strictatime", "Each read also writes an access time (strictatime)."),
    _row("", r"dax(=always)?", "It maps the medium directly (dax): no block layer and no page cache are in the way."),
    _row("xfs", r"(logdev|rtdev)=.*", "A part of it is on another device ({option}), which is not in this list."),
    _row("", r"ro", "It is read-only, so only reads are possible."),
    _row("tmpfs ramfs devtmpfs hugetlbfs", "", "It is memory, not a drive. Choose a folder on a drive."),
    _row("tmpfs", "", "Its pages can be swapped out, and then the swap space is measured.", r"noswap"),
)  # fmt: skip
"""What a reader of the numbers must know.

Sources: ext4(5), btrfs(5) and its chapter on checksumming, xfs(5), zfsprops(7), Documentation/filesystems.
"""


def mounts(host: Host) -> Iterator[Mount]:
    for fields in mount_lines(host.proc_root):
        kind, source, *more = fields[fields.index("-") + 1 :]
        options = [*fields[5].split(","), *(more[0].split(",") if more else ())]
        yield Mount(
            fields[0], fields[1], fields[2], unescaped(fields[4]), kind, unescaped(source),
            tuple(dict.fromkeys(map(unescaped, options))),
        )  # fmt: skip


def mount_of(path: str, table: Iterable[Mount]) -> Mount | None:
    """Return the mount that a real path is on, or None without a root mount.

    Follows the tree of mounts, because a later mount hides earlier ones at and below its mount point.
    """
    mounts = tuple(table)
    ids = {mount.id for mount in mounts}
    current = next((mount for mount in mounts if mount.point == "/" and mount.parent not in ids), None)
    if current is None:
        return None
    for prefix in reversed([PurePosixPath(path), *PurePosixPath(path).parents]):
        current = _topmost(current, str(prefix), mounts)
    return current


def _topmost(below: Mount, point: str, mounts: tuple[Mount, ...]) -> Mount:
    seen = {below.id}
    while above := next((m for m in mounts if m.point == point and m.parent == below.id and m.id not in seen), None):
        below = above
        seen.add(below.id)
    return below


def describe(mount: Mount, path: str, device: str, host: Host) -> tuple[str, tuple[str, ...]]:
    """Return words and cautions for a mount; `device` is the kernel name below it, or empty."""
    options = (*mount.options, *_ext_options(device, mount.kind, host), *folder_flags(path))
    shown = [option for option in dict.fromkeys(options) if _SHOWN_OPTIONS.fullmatch(option)]
    words = mount.kind + (f", mounted with {', '.join(shown)}" if shown else "")
    return words, tuple(_cautions(mount.kind, options))


def _cautions(kind: str, options: tuple[str, ...]) -> Iterator[str]:
    for caution in CAUTIONS:
        if caution.kinds and kind not in caution.kinds:
            continue
        if caution.unless and any(re.fullmatch(caution.unless, option) for option in options):
            continue
        if not caution.option:
            yield caution.sentence
        elif option := next((option for option in options if re.fullmatch(caution.option, option)), None):
            yield caution.sentence.format(option=option)


def _ext_options(device: str, kind: str, host: Host) -> tuple[str, ...]:
    """Return all options of an ext3 or ext4 file system: mountinfo omits those that are defaults of its superblock."""
    if kind not in ("ext3", "ext4") or not device:
        return ()
    return tuple((read_text(host.proc_root / "fs" / kind / device / "options") or "").split())


def folder_flags(path: str) -> tuple[str, ...]:
    """Return what chattr(1) has set on a file or folder and new files in it inherit; empty if it cannot be asked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ()
    try:
        value = fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, bytes(8))
    except OSError:  # this file system has no flags
        return ()
    finally:
        os.close(descriptor)
    bits = int.from_bytes(value[:4], "little")
    return tuple(name for bit, name in _FOLDER_FLAGS.items() if bits & bit)


def btrfs_members(name: str, host: Host) -> tuple[list[str], str | None]:
    """Return all devices of the mounted btrfs that has the device `name`, and its data profile if sysfs tells it.

    Sources: Documentation/ABI/testing/sysfs-fs-btrfs.
    """
    for folder in sorted((host.sys_root / "fs/btrfs").glob("*/devices")):
        members = sorted(path.name for path in folder.iterdir())
        if name in members:
            profiles = [path.name for path in sorted((folder.parent / "allocation/data").glob("*")) if path.is_dir()]
            return members, " and ".join(profiles) or None
    return [name], None


def upper_folder(mount: Mount) -> Path | None:
    """Return the folder that takes the writes of an overlay (Documentation/filesystems/overlayfs.rst)."""
    folders = [option.removeprefix("upperdir=") for option in mount.options if option.startswith("upperdir=")]
    return Path(folders[0]) if folders else None
