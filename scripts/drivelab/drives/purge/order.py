"""Which methods `auto` tries on a drive, and in which order: the first that works and is verified is taken.

Flash comes back to as if never written only when its map forgets all data. What erases all media, spare area included,
comes before what erases user data, that before what only changes the key, and that before TRIM. Overwrites wear flash
and leave it full, so they come after TRIM; those by the drive itself reach the spare area, so they come first of them.

A rotating drive has no such map unless it is shingled, and then TRIM clears it. Without TRIM the host's overwrite does
the same to it, in the same time, as the drive's own erase commands, and cannot leave it locked or unusable.
"""

from __future__ import annotations

from pathlib import Path

from drivelab.drives.sysfs import block_dir, read_text

NVME = (
    "nvme-sanitize-block", "nvme-format-user-data", "nvme-sanitize-crypto", "nvme-format-crypto", "trim",
    "nvme-sanitize-overwrite", "overwrite",
)  # fmt: skip
SCSI_FLASH = (
    "scsi-sanitize-block", "ata-erase", "scsi-sanitize-crypto", "ata-erase-enhanced", "trim", "scsi-format",
    "scsi-sanitize-overwrite", "overwrite",
)  # fmt: skip
"""SATA and SAS, which the kernel both calls sdX. An enhanced erase may write a pattern of the maker's and a format does
write one, so a normal erase is before the one and TRIM before the other."""
BY_HOST = ("trim", "overwrite")
"""Rotating drives, virtual drives, and whatever else the host sees."""


def methods_for(name: str, sys_root: Path = Path("/sys")) -> tuple[str, ...]:
    """Names of methods for a drive, given by kernel name."""
    if name.startswith("nvme"):
        return NVME
    if name.startswith("sd") and read_text(block_dir(name, sys_root) / "queue/rotational") == "0":
        return SCSI_FLASH
    return BY_HOST
