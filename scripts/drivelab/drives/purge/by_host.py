"""Purge methods of the host for any drive: discard everything, or overwrite everything."""

from __future__ import annotations

import mmap
from typing import Any

from drivelab.core.errors import UserError
from drivelab.drives import raw, sysfs
from drivelab.drives.approved import HeldDevice
from drivelab.drives.purge.method import Drives, Leaves, Method, Promise, Rank, Say, attended
from drivelab.drives.sysfs import read_text

_WRITE_BYTES = 4 << 20


def discards(name: str) -> bool:
    """Return whether the kernel can send TRIM, UNMAP or Deallocate to a drive."""
    return (read_text(sysfs.whole_dir(name) / "queue/discard_max_bytes") or "0") != "0"


def _no_trim(device: HeldDevice) -> str | None:
    return None if discards(device.name) else "the drive, or the kernel's path to it, does not support TRIM"


def _trim(device: HeldDevice, say: Say) -> dict[str, Any]:
    """Discard the whole drive in one call: a boundary inside a discard unit would leave that unit undiscarded."""
    arguments = ["--force", device.path]
    output = attended(device.name, say, "TRIM of the whole drive", None, "blkdiscard", *arguments)
    if output.status != 0:
        raise UserError(f"{device.device}: TRIM failed ({output.words}); try another method, such as overwrite")
    return {"command": ["blkdiscard", *arguments]}


def _overwrite(device: HeldDevice, say: Say) -> dict[str, Any]:
    """Write zeros from the first block to the last.

    Why zeros and not random data: to a rotating drive both are equal. A drive that compresses or detects zeros comes
    closest to empty. Any other flash drive is equally full after either. And zeros can be verified anywhere later.
    """
    total = sysfs.capacity_bytes(device.name)
    done = 0
    try:
        with raw.opened(device.path, write=True) as drive, mmap.mmap(-1, _WRITE_BYTES) as zeros:
            view = memoryview(zeros)
            try:
                while done < total:
                    length = min(_WRITE_BYTES, total - done)
                    with view[:length] as part:
                        drive.write_from(done, part)
                    done += length
                    say("overwrite with zeros", done / total)
            finally:
                view.release()
            drive.sync()
    except OSError as error:
        raise UserError(
            f"{device.device}: the overwrite failed at byte {done} of {total} ({error}); replace the drive"
        ) from None
    return {"written_bytes": total}


METHODS = (
    Method(
        "trim", "TRIM of the whole drive", Promise.PATTERN, Leaves.UNWRITTEN,
        _no_trim, _trim, Rank.TRIM, frozenset(Drives),
    ),
    Method(
        "overwrite", "one overwrite of the whole drive with zeros", Promise.ZEROS, Leaves.OVERWRITTEN,
        lambda device: None, _overwrite, Rank.OVERWRITE_BY_HOST, frozenset(Drives), host_writes=True,
    ),
)  # fmt: skip
