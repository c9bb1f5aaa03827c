"""Who uses a virtual drive: locks of the files NAME.lock and NAME.users.lock, and of the loop device."""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.core.files import run_directory
from drivelab.virtual import fuse

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")
_AGAIN_S = 0.05


def path_of(name: str, kind: str) -> Path:
    """Return the path of a drive's file NAME.KIND in the run directory; raises UserError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"'{name}' is not a valid name of a virtual drive; use at most 41 lower-case letters, digits and hyphens"
        )
    return run_directory() / "virtual" / f"{name}.{kind}"


@contextmanager
def starting_or_stopping(name: str) -> Iterator[None]:
    """Let only one process at a time start or stop a drive; the lock ends with the process that holds it."""
    with _locked(name, "lock", fcntl.LOCK_EX):
        yield


@contextmanager
def using(name: str) -> Iterator[None]:
    """Keep other processes from stopping the drive within the context; any number of processes can use it."""
    with _locked(name, "users.lock", fcntl.LOCK_SH):
        yield


@contextmanager
def _locked(name: str, kind: str, how: int) -> Iterator[None]:
    path = path_of(name, kind)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UserError(f"virtual drive '{name}': cannot open {path} ({error.strerror}); run as root") from None
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def in_use(name: str) -> bool:
    """Return whether a command uses the drive, or a stage, which holds flock on its device.

    udev also locks the device while it reads it, so a lock that ends within `lock.PASSING_S` does not count.
    """
    if lock.is_held(path_of(name, "users.lock")):
        return True
    deadline_s = time.monotonic() + lock.PASSING_S
    while any(lock.is_held(Path(device)) for device in fuse.loop_devices(path_of(name, "drive"))):
        if time.monotonic() >= deadline_s:
            return True
        time.sleep(_AGAIN_S)
    return False
