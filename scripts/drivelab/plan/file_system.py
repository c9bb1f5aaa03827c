"""A file system as part of a plan: drivelab makes it on the drive and measures a file on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from drivelab.core.errors import UserError
from drivelab.core.units import parse_share

MIB = 1 << 20
LEAST_BYTES = {"ext4": 8 * MIB, "xfs": 300 * MIB, "btrfs": 128 * MIB, "f2fs": 64 * MIB}
"""Smallest device for each type, by its mkfs."""
BLOCK_BYTES = 4096
"""Satisfies O_DIRECT on every file system and device."""
FILE_SHARE = 0.4
"""Usual size of the file, as a share of the drive's capacity. A share of the capacity, because the free space differs
between file systems, and their files must have one size to be compared. Below a half, because btrfs frees an extent
only when its last block is overwritten, so that random writes may take the space of the file twice."""
_MOST_SHARE = 0.95
_NO_WRITES = frozenset({"ro", "remount", "bind", "rbind", "move", "loop", "offset", "sizelimit"})
"""Options of mount(8) that make something other than a writable mount of the drive."""


@dataclass(frozen=True)
class FileSystem:
    """A type of file system, how drivelab makes and mounts it, and the file on it."""

    type: str
    mkfs: tuple[str, ...] = ()
    """Arguments of mkfs, without the device."""
    mount: tuple[str, ...] = ()
    """Options of mount(8)."""
    file_share: float = FILE_SHARE
    """Size of the measured file, as a share of the drive's capacity."""

    @classmethod
    def from_study(cls, body: Mapping[str, Any], place: str) -> FileSystem:
        """Return the file system of a platform; `place` names the key in errors.

        The schema has checked types and patterns. Raises UserError for an option that prevents measuring.
        """
        mount = tuple(map(str, body.get("mount", ())))
        for option in mount:
            if option.partition("=")[0] in _NO_WRITES:
                raise UserError(
                    f"{place}.mount' has '{option}', which does not mount the drive itself for writing. drivelab "
                    "writes a file there. Remove the option."
                )
        share = parse_share(body["file"]) if "file" in body else FILE_SHARE
        if not 0 < share <= _MOST_SHARE:
            raise UserError(
                f"{place}.file' is {body['file']}. The file needs space, and the file system too. Give more than 0% "
                f"and at most {_MOST_SHARE:.0%}."
            )
        return cls(body["type"], tuple(map(str, body.get("mkfs", ()))), mount, share)

    @classmethod
    def from_mapping(cls, body: Mapping[str, Any]) -> FileSystem:
        """Return the file system of a plan."""
        return cls(body["type"], tuple(body["mkfs"]), tuple(body["mount"]), body["file_share"])

    def to_mapping(self) -> dict[str, Any]:
        """Return what a measurement depends on, JSON-able."""
        return {**asdict(self), "mkfs": list(self.mkfs), "mount": list(self.mount)}

    def file_bytes(self, capacity_bytes: int) -> int:
        """Return the size of the file on a drive: whole MiB, so that it is the same on every file system."""
        return int(capacity_bytes * self.file_share) // MIB * MIB
