"""Let the guard wait longer for udev, which reads a changed device late on a very slow machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from drivelab.core import lock

lock.PASSING_S = 60.0


@contextmanager
def waiting(passing_s: float) -> Iterator[None]:
    """Let the guard wait `passing_s` for programs that use a device, within the context."""
    before = lock.PASSING_S
    lock.PASSING_S = passing_s
    try:
        yield
    finally:
        lock.PASSING_S = before
