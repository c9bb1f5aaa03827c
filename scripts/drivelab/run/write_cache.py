"""Set a drive's write cache as the study says while a stage uses the drive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from drivelab.core.errors import UserError
from drivelab.drives import write_cache
from drivelab.drives.approved import ApprovedDevice
from drivelab.host.temporary import Temporary


def refuse_unknown(approved: ApprovedDevice, wanted: str) -> None:
    """Raise UserError if a drive, or a disk below a partition, volume or array, does not report its write cache."""
    for drive in _drives(approved):
        _known_state(drive, wanted)


def _drives(approved: ApprovedDevice) -> list[ApprovedDevice]:
    """Return the drives with the write cache of a subject: itself, or all disks below it."""
    if not approved.disks:
        return [approved]
    return [
        ApprovedDevice(f"/dev/{disk}", disk, approved.serial, approved.virtual, identity=approved.identity)
        for disk in approved.disks
    ]


def _known_state(drive: ApprovedDevice, wanted: str) -> write_cache.State:
    state = write_cache.state(drive.name)
    if state is None:
        raise UserError(
            f"{drive.device} does not report a write cache, so drivelab cannot switch it {wanted}; "
            "set 'write_cache: unchanged' in the study. Nothing was written."
        )
    return state


@contextmanager
def as_wanted(approved: ApprovedDevice, wanted: str | None) -> Iterator[None]:
    """Set the volatile write cache `on` or `off` and restore it at the end.

    After a kill, at the next start. None leaves the cache unchanged. A drive without a cache counts as `off`. A virtual
    drive's cache is part of its model. Raises UserError if the drive does not report its cache or does not change it.
    """
    if approved.virtual is not None or wanted is None:
        yield
        return
    states = [(drive, _known_state(drive, wanted)) for drive in _drives(approved)]
    with Temporary("drive-" + re.sub(r"[^A-Za-z0-9._-]", "_", approved.serial)[:60]).claim(print) as settings:
        for drive, state in states:
            if state in (wanted, "none"):
                continue
            undo = write_cache.undo_of(drive, wanted == "on")
            if undo is not None:
                settings.remember(f"write cache of {drive.name}" if approved.disks else "write cache", undo)
                write_cache.change(drive, wanted == "on")
        yield
