"""Who uses a virtual drive: locks of the files NAME.lock and NAME.users.lock, and of the loop device."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.core.private import make_private, run_directory
from drivelab.virtual import fuse

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}")


def path_of(name: str, kind: str) -> Path:
    """Return the path of a drive's file NAME.KIND in the run directory; raises UserError for an invalid name."""
    if not _NAME.fullmatch(name):
        raise UserError(
            f"'{name}' is not a valid name of a virtual drive; use at most 41 lower-case letters, digits and hyphens"
        )
    return run_directory() / "virtual" / f"{name}.{kind}"


def starting_or_stopping(name: str) -> AbstractContextManager[None]:
    """Let only one process at a time start or stop a drive; the lock ends with the process that holds it."""
    return _locked(name, "lock", shared=False)


def using(name: str) -> AbstractContextManager[None]:
    """Keep other processes from stopping the drive within the context; any number of processes can use it."""
    return _locked(name, "users.lock", shared=True)


@contextmanager
def _locked(name: str, kind: str, *, shared: bool) -> Iterator[None]:
    path = path_of(name, kind)
    with ExitStack() as stack:
        try:
            make_private(path.parent)
            stack.enter_context(lock.alone(path, 0o644, shared=shared))
        except OSError as error:
            raise UserError(f"virtual drive '{name}': cannot open {path} ({error.strerror}); run as root") from None
        yield


def in_use(name: str) -> bool:
    """Return whether a command uses the drive, or a stage, which holds flock on its device.

    udev also locks the device while it reads it, so a lock that ends within `lock.PASSING_S` does not count.
    """
    devices = map(Path, fuse.loop_devices(path_of(name, "drive")))
    return lock.is_held(path_of(name, "users.lock")) or any(lock.is_held(path, lock.PASSING_S) for path in devices)
