"""The order in which `auto` tries purge methods; it uses the first that works and is verified.

Flash returns to the never-written state only when its map forgets all data. The order for flash is therefore: erase of
all media with the spare area, erase of user data, change of the key, TRIM, overwrites. Overwrites come last because
they wear flash and leave it full. Overwrites by the drive reach the spare area, so they come before those by the host.

A rotating drive has no such map unless it is shingled, and then TRIM clears the map. Without TRIM, the host's overwrite
has the same effect and takes as long as the drive's own erase commands, and cannot leave the drive locked or unusable.
"""

from __future__ import annotations

from enum import Enum, IntEnum, auto
from pathlib import Path

from drivelab.drives.sysfs import block_dir, read_text


class Drives(Enum):
    """Drives with an order of their own."""

    NVME = auto()
    SCSI_FLASH = auto()
    """SATA and SAS flash, which the kernel both calls sdX."""
    OTHER = auto()
    """Rotating drives, virtual drives and all other devices."""


class Rank(IntEnum):
    """The place of a method in the order; methods of the same rank are in the order of their names."""

    ALL_MEDIA = auto()
    USER_DATA = auto()
    KEY = auto()
    WEAKER_KEY = auto()
    """Changes the key of the user data only, or may write a vendor pattern, as an enhanced ATA erase does."""
    TRIM = auto()
    FORMAT = auto()
    """Writes a pattern."""
    OVERWRITE_BY_DRIVE = auto()
    OVERWRITE_BY_HOST = auto()


def drives_of(name: str, sys_root: Path = Path("/sys")) -> Drives:
    """Return the group of a drive, given by kernel name."""
    if name.startswith("nvme"):
        return Drives.NVME
    if name.startswith("sd") and read_text(block_dir(name, sys_root) / "queue/rotational") == "0":
        return Drives.SCSI_FLASH
    return Drives.OTHER
