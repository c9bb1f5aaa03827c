"""Let only one process use a drive or a folder, because a killed workflow leaves its children running."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from drivelab.core.errors import UserError

PASSING_S = 3.0
"""Time to wait for a program that uses a device briefly, such as udev after a writer has closed the device."""
_AGAIN_S = 0.05


class Hold:
    """A device node held with O_EXCL, so that it cannot be mounted (open(2))."""

    def __init__(self, path: str, drive: str, label: str) -> None:
        """Hold the device at `path`, which messages call `label`; raises UserError if it is already held."""
        self._place = Path(path), drive, label
        self._descriptor: int | None = _opened(*self._place, os.O_EXCL)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the device within the context, to mount drivelab's own file system: a mount holds the device itself.

        Raises UserError at the end if something else holds the device by then.
        """
        self.close()
        try:
            yield
        except BaseException:
            with suppress(UserError):
                self._descriptor = _opened(*self._place, os.O_EXCL)
            raise
        self._descriptor = _opened(*self._place, os.O_EXCL)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def exclusive(path: Path, drive: str, *, label: str = "") -> Iterator[None]:
    """Hold flock(2) on a device node or a lock file; raises UserError if another process holds it.

    Waits up to PASSING_S for a device node, because systemd's udev locks it while it reads it (systemd, "Locking Block
    Device Access"). Only drivelab locks a file, so a locked file is refused at once. Messages use `label`, or the path.
    The kernel releases the lock when the process ends for any reason.
    """
    label = label or str(path)
    descriptor = _opened(path, drive, label, 0 if path.exists() else os.O_CREAT)
    try:
        passing_s = PASSING_S if stat.S_ISBLK(os.fstat(descriptor).st_mode) else 0.0
        if not _locked(descriptor, time.monotonic() + passing_s):
            others = f", or by udev for more than {passing_s:g} s" if passing_s else ""
            raise UserError(
                f"drive '{drive}' is being used by another drivelab process{others} (lock on {label}); "
                "wait for that process or end it, then run the command again"
            )
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, deadline_s: float) -> bool:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(_AGAIN_S)
        else:
            return True


def _opened(path: Path, drive: str, label: str, flags: int) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, 0o644)
    except OSError as error:
        raise UserError(f"drive '{drive}': cannot hold {label} ({error.strerror}); check what else uses it") from None


@contextmanager
def alone(path: Path, mode: int = 0o600, *, shared: bool = False) -> Iterator[None]:
    """Wait for a lock file, and hold it within the context; create it and its folder if needed.

    Any number of processes hold a shared lock at the same time, but not beside one that is not shared. Raises OSError
    if the file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def locked_file(path: Path, refusal: str) -> TextIO:
    """Create a lock file if needed, and return it locked until closed; raises UserError(`refusal`) if it is locked."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a")
    if not _locked(file.fileno(), 0.0):
        file.close()
        raise UserError(refusal)
    return file


def is_held(path: Path, passing_s: float = 0.0) -> bool:
    """Return whether a process holds the lock of `exclusive`, also after `passing_s`.

    False for a path that cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _locked(descriptor, time.monotonic() + passing_s)
    finally:
        os.close(descriptor)
