"""Check whether this machine supports virtual drives in real time."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from drivelab.virtual import fuse


def possible() -> str | None:
    """Try a real mount and loop device; return why virtual drives cannot run in real time here, or None."""
    if os.geteuid() != 0:
        return "virtual drives in real time need root"
    if shutil.which("losetup") is None:
        return "virtual drives in real time need the program losetup (package mount)"
    try:
        with tempfile.NamedTemporaryFile() as file:
            descriptor = fuse.mount(Path(file.name), "drivelab:probe")
            os.close(descriptor)
            fuse.unmount(Path(file.name))
    except OSError as error:
        return f"virtual drives in real time need FUSE, but mounting it fails here ({error.strerror})"
    try:
        os.close(os.open(fuse.free_loop_device(), os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"virtual drives in real time need a loop device, but none is available here ({error.strerror})"
    return None
