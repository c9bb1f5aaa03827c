"""The content that a drive declares for blocks without data."""

from __future__ import annotations

from drivelab.drives import ata, nvme, scsi
from drivelab.drives.guard import HeldDevice

_DLFEAT_BYTE = {1: 0x00, 2: 0xFF}
"""DLFEAT bits 2:0 (NVM Command Set, Identify Namespace); 0 declares nothing."""


def declared_byte(device: HeldDevice) -> int | None:
    """Return the value of every byte of a deallocated block, or None if the drive declares none.

    NVMe: DLFEAT; ATA: "deterministic read zeros after TRIM"; SCSI: LBPRZ (SBC-4, READ CAPACITY (16)).
    """
    if device.name.startswith("nvme"):
        answer = nvme.id_ns(device.path) or {}
        return _DLFEAT_BYTE.get((nvme.whole(answer.get("dlfeat")) or 0) & 0x7)
    if device.name.startswith("loop"):
        return 0x00  # a hole in the file
    if not device.name.startswith("sd"):
        return None
    drive = ata.identify(device.path)
    if drive is not None:
        return 0x00 if drive.after_trim == "zeros" else None
    capacity = scsi.read_capacity(device.path)
    return 0x00 if capacity is not None and capacity.unmapped_reads_zeros else None
