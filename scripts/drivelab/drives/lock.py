"""One process at a time on a drive: a killed workflow leaves its children running."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from drivelab.errors import UserError


class Hold:
    """A device node held with O_EXCL, so that nobody can mount it (open(2))."""

    def __init__(self, path: Path, drive: str) -> None:
        """Take hold; raises UserError when something else holds it."""
        self._path, self._drive = path, drive
        self._descriptor: int | None = _opened(path, drive, os.O_EXCL)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let go meanwhile, for a file system of one's own: who mounts takes hold itself.

        Raises UserError at the end when something else holds the device then.
        """
        self.close()
        try:
            yield
        except BaseException:
            with suppress(UserError):
                self._descriptor = _opened(self._path, self._drive, os.O_EXCL)
            raise
        self._descriptor = _opened(self._path, self._drive, os.O_EXCL)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def exclusive(path: Path, drive: str, *, hold: bool = False) -> Iterator[Hold | None]:
    """Hold flock(2) on a device node or a lock file; raises UserError at once if another process has it.

    With `hold` a device node is also held with O_EXCL, so that nobody can mount it meanwhile (open(2)); what is
    yielded can let go of that, while the lock stays.

    systemd's udev takes part in the same protocol on device nodes (systemd, "Locking Block Device Access").
    The kernel lets go of the lock when the process ends, however it ends.
    """
    held = Hold(path, drive) if hold else None
    try:
        descriptor = _opened(path, drive, 0 if hold or path.exists() else os.O_CREAT)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise _in_use(path, drive) from None
            yield held
        finally:
            os.close(descriptor)
    finally:
        if held is not None:
            held.close()


def _opened(path: Path, drive: str, flags: int) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, 0o644)
    except OSError as error:
        raise UserError(f"drive '{drive}': {path} cannot be held ({error.strerror}); see what else uses it") from None


def refuse_if_held(path: Path, drive: str) -> None:
    """Raise the UserError of `exclusive` before others are asked, who would only say that somebody has the drive."""
    if is_held(path):
        raise _in_use(path, drive)


def _in_use(path: Path, drive: str) -> UserError:
    return UserError(
        f"drive '{drive}' is being used by another drivelab process (lock on {path}); "
        "wait for it to end, or end it, and run again"
    )


def is_held(path: Path) -> bool:
    """Whether a process holds the lock of `exclusive`; False for a path that cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
