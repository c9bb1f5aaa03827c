"""The order in which `auto` tries purge methods; it uses the first that works and is verified.

Flash returns to the never-written state only when its map forgets all data. The order for flash is therefore: erase of
all media with the spare area, erase of user data, change of the key, TRIM, overwrites. Overwrites come last because
they wear flash and leave it full. Overwrites by the drive reach the spare area, so they come before those by the host.

A rotating drive has no such map unless it is shingled, and then TRIM clears the map. Without TRIM, the host's overwrite
has the same effect and takes as long as the drive's own erase commands, and cannot leave the drive locked or unusable.
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
"""SATA and SAS, which the kernel both calls sdX. An enhanced erase may write a vendor pattern, so a normal erase comes
before it. A format writes a pattern, so TRIM comes before it."""
BY_HOST = ("trim", "overwrite")
"""Rotating drives, virtual drives and all other devices."""


def methods_for(name: str, sys_root: Path = Path("/sys")) -> tuple[str, ...]:
    """Return the names of the methods for a drive, given by kernel name."""
    if name.startswith("nvme"):
        return NVME
    if name.startswith("sd") and read_text(block_dir(name, sys_root) / "queue/rotational") == "0":
        return SCSI_FLASH
    return BY_HOST
