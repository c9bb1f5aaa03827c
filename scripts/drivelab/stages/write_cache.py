"""The write cache of a drive as the study wants it, while a stage uses the drive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from drivelab.drives import write_cache
from drivelab.drives.guard import ApprovedDevice
from drivelab.errors import UserError
from drivelab.host.temporary import Temporary


def known_state(approved: ApprovedDevice, wanted: str) -> write_cache.State:
    """State of the write cache; raises UserError when the drive does not tell, so that it cannot be set."""
    state = write_cache.state(approved.name)
    if state is None:
        raise UserError(
            f"{approved.device} does not tell whether it has a write cache, so it cannot be switched {wanted}; "
            "give the study 'write_cache: unchanged'. Nothing was written."
        )
    return state


@contextmanager
def as_wanted(approved: ApprovedDevice, wanted: str | None) -> Iterator[None]:
    """Set the volatile write cache `on` or `off`, and put it back at the end, also after a kill at the next start.

    None leaves it as it is, and a drive that has none is as good as off. A virtual drive's is part of its model.
    Raises UserError when the drive does not tell of its cache, or does not obey.
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
