"""Reads and writes of a drive past the page cache, which would answer with what the drive no longer holds."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_BLKFLSBUF = 0x1261
_BLKRRPART = 0x125F
"""linux/fs.h"""


class Raw:
    """An open drive. All offsets and lengths are multiples of its logical block (open(2), O_DIRECT)."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes; raises OSError where the drive cannot give them."""
        with mmap.mmap(-1, length) as buffer:
            done = os.preadv(self._descriptor, [buffer], offset)
            if done != length:
                raise OSError(f"only {done} of {length} bytes could be read at byte {offset}")
            return buffer[:]

    def write(self, offset: int, data: bytes) -> None:
        """All of `data`, not yet safe in the drive: see `sync`. Raises OSError."""
        with mmap.mmap(-1, len(data)) as buffer:
            buffer[:] = data
            self.write_from(offset, buffer)

    def write_from(self, offset: int, buffer: mmap.mmap | memoryview) -> None:
        """All of a buffer that is aligned to a page; raises OSError."""
        done = os.pwritev(self._descriptor, [buffer], offset)
        if done != len(buffer):
            raise OSError(f"only {done} of {len(buffer)} bytes could be written at byte {offset}")

    def sync(self) -> None:
        """Wait until the drive says that its volatile cache is flushed."""
        os.fsync(self._descriptor)


@contextmanager
def opened(device: str, *, write: bool = False) -> Iterator[Raw]:
    """A drive opened with O_DIRECT; raises OSError."""
    descriptor = os.open(device, (os.O_RDWR if write else os.O_RDONLY) | os.O_DIRECT | os.O_CLOEXEC)
    try:
        yield Raw(descriptor)
    finally:
        os.close(descriptor)


def drop_page_cache(device: str) -> None:
    """Write back and forget what the page cache holds of a device; raises OSError.

    Before a purge, so that nothing dirty is written after it; after it, because programs that read through the cache
    (blkid, wipefs) would go on seeing the old data as long as anybody holds the device open.
    """
    _ioctl(device, _BLKFLSBUF)


def reread_partition_table(device: str) -> None:
    """Ask the kernel to; it refuses silently here where the device has no partitions or is held with O_EXCL."""
    with suppress(OSError):
        _ioctl(device, _BLKRRPART)


def _ioctl(device: str, request: int) -> None:
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, request)
    finally:
        os.close(descriptor)
