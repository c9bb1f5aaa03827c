"""Purge of a real drive, verified by reading back: an exit status proves nothing."""

from __future__ import annotations

import mmap
import os
import random
import subprocess
from typing import Any

from drivelab.drives import sysfs
from drivelab.drives.guard import ApprovedDevice
from drivelab.errors import UserError

_SAMPLES = 64
_SAMPLE_BYTES = 4096


def purge_by_trim(device: ApprovedDevice) -> dict[str, Any]:
    """Discard the whole drive and verify that random places read as zeros.

    Raises UserError when the drive does not discard, or keeps data: its state is unknown then.
    """
    result = subprocess.run(["blkdiscard", "--force", device.device], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise UserError(
            f"{device.device} cannot be purged by TRIM ({result.stderr.strip() or 'blkdiscard failed'}); "
            "purge it with its maker's tool and give the protocol 'purge: none'"
        )
    stale = _first_stale_offset(device)
    if stale is not None:
        raise UserError(
            f"{device.device} still holds data at byte {stale} after TRIM of the whole drive, so it is not purged; "
            "purge it with its maker's tool and give the protocol 'purge: none'"
        )
    return {"method": "TRIM of the whole drive", "verified": f"{_SAMPLES} random places read as zeros"}


def _first_stale_offset(device: ApprovedDevice) -> int | None:
    """Read past the page cache (O_DIRECT, so into an aligned buffer); a chance choice of places cannot be foreseen."""
    blocks = sysfs.capacity_bytes(device.name) // _SAMPLE_BYTES
    descriptor = os.open(device.device, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
    try:
        with mmap.mmap(-1, _SAMPLE_BYTES) as buffer:
            for block in random.SystemRandom().sample(range(blocks), min(_SAMPLES, blocks)):
                os.preadv(descriptor, [buffer], block * _SAMPLE_BYTES)
                if any(buffer[:]):
                    return block * _SAMPLE_BYTES
    finally:
        os.close(descriptor)
    return None
