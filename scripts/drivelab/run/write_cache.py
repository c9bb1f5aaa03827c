"""Set a drive's write cache as the study says while a stage uses the drive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from drivelab.core.errors import UserError
from drivelab.drives import write_cache
from drivelab.drives.approved import ApprovedDevice
from drivelab.host.temporary import Temporary


def known_state(approved: ApprovedDevice, wanted: str) -> write_cache.State:
    """Return the state of the write cache; raises UserError if the drive does not report it."""
    state = write_cache.state(approved.name)
    if state is None:
        raise UserError(
            f"{approved.device} does not report a write cache, so drivelab cannot switch it {wanted}; "
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
    state = known_state(approved, wanted)
    with Temporary("drive-" + re.sub(r"[^A-Za-z0-9._-]", "_", approved.serial)[:60]).claim(print) as settings:
        if state not in (wanted, "none"):
            undo = write_cache.undo_of(approved, wanted == "on")
            if undo is not None:
                settings.remember("write cache", undo)
                write_cache.change(approved, wanted == "on")
        yield
