"""The kinds of subjects that the drive sheet may list: how each is named and pinned."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"[A-Za-z0-9_.:+=@-]+"


@dataclass(frozen=True)
class Kind:
    """One kind of subject."""

    name: str
    device: re.Pattern[str]
    """What the column `device` may hold."""
    paths: str
    """The same in words, for errors and the reference page."""
    pinned_by: str
    """What the column `serial` holds, in words."""
    has_members: bool = False
    """Whether the column `members` must name the disks that carry it."""
    destroyed: bool = True
    """Whether a measurement destroys data; otherwise the row's `destructive` has no effect."""


DRIVE = Kind(
    "drive",
    re.compile(rf"virtual:[a-z0-9][a-z0-9-]{{0,40}}|/dev/disk/by-id/{_NAME}"),
    "a path under /dev/disk/by-id, or virtual:NAME for a model in config/virtual_drives.yaml",
    "the serial number that the drive reports",
)
PARTITION = Kind(
    "partition",
    re.compile(rf"/dev/disk/by-(id|partuuid)/{_NAME}"),
    "a path under /dev/disk/by-partuuid or /dev/disk/by-id",
    "the partition's UUID (PARTUUID)",
    has_members=True,
)
VOLUME = Kind(
    "volume",
    re.compile(rf"/dev/mapper/{_NAME}|/dev/disk/by-id/dm-{_NAME}"),
    "a path under /dev/mapper, or /dev/disk/by-id/dm-…",
    "the UUID of the device mapper (dmsetup info -c -o uuid)",
    has_members=True,
)
ARRAY = Kind(
    "array",
    re.compile(rf"/dev/md/{_NAME}|/dev/disk/by-id/md-{_NAME}"),
    "a path under /dev/md, or /dev/disk/by-id/md-…",
    "the UUID of the array (mdadm --detail)",
    has_members=True,
)
NAMESPACE = Kind(
    "namespace",
    re.compile(rf"/dev/disk/by-id/nvme-{_NAME}"),
    "a path /dev/disk/by-id/nvme-…",
    "the unique identifier of the namespace (wwid in sysfs)",
)
FILE = Kind(
    "file",
    re.compile(r"/[^\t\n]*"),
    "the absolute path of a folder, in which drivelab measures a temporary file",
    "the UUID of the folder's file system",
    destroyed=False,
)
READ_ONLY = Kind(
    "read-only",
    re.compile(r"/dev/[^\t\n]+"),
    "any block device, even in use; drivelab only reads it",
    "its serial number or other identifier, or `unknown`",
    destroyed=False,
)

KINDS = {kind.name: kind for kind in (DRIVE, PARTITION, VOLUME, ARRAY, NAMESPACE, FILE, READ_ONLY)}
"""Kinds by the name that the column `kind` holds."""
