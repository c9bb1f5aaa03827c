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

    def __init__(self, path: str, drive: str, label: str) -> None:
        """Take hold of the device at `path`, which messages call `label`; raises UserError when it is held already."""
        self._place = Path(path), drive, label
        self._descriptor: int | None = _opened(*self._place, os.O_EXCL)

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
                self._descriptor = _opened(*self._place, os.O_EXCL)
            raise
        self._descriptor = _opened(*self._place, os.O_EXCL)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextmanager
def exclusive(path: Path, drive: str, *, label: str = "") -> Iterator[None]:
    """Hold flock(2) on a device node or a lock file; raises UserError at once if another process has it.

    Messages call it `label`, or by its path. systemd's udev takes part in the same protocol on device nodes (systemd,
    "Locking Block Device Access"). The kernel lets go of the lock when the process ends, however it ends.
    """
    label = label or str(path)
    descriptor = _opened(path, drive, label, 0 if path.exists() else os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(
                f"drive '{drive}' is being used by another drivelab process (lock on {label}); "
                "wait for it to end, or end it, and run again"
            ) from None
        yield
    finally:
        os.close(descriptor)


def _opened(path: Path, drive: str, label: str, flags: int) -> int:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags, 0o644)
    except OSError as error:
        raise UserError(f"drive '{drive}': {label} cannot be held ({error.strerror}); see what else uses it") from None


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
