"""Read and write a drive without the page cache, which could return data that the drive no longer holds."""

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
        """Read exactly `length` bytes; raises OSError if the drive cannot return them."""
        with mmap.mmap(-1, length) as buffer:
            done = os.preadv(self._descriptor, [buffer], offset)
            if done != length:
                raise OSError(f"only {done} of {length} bytes could be read at byte {offset}")
            return buffer[:]

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data`, not yet durable (see `sync`); raises OSError."""
        with mmap.mmap(-1, len(data)) as buffer:
            buffer[:] = data
            self.write_from(offset, buffer)

    def write_from(self, offset: int, buffer: mmap.mmap | memoryview) -> None:
        """Write all of a page-aligned buffer; raises OSError."""
        done = os.pwritev(self._descriptor, [buffer], offset)
        if done != len(buffer):
            raise OSError(f"only {done} of {len(buffer)} bytes could be written at byte {offset}")

    def sync(self) -> None:
        """Wait until the drive reports that its volatile cache is flushed."""
        os.fsync(self._descriptor)


@contextmanager
def opened(device: str, *, write: bool = False) -> Iterator[Raw]:
    """Open a drive with O_DIRECT; raises OSError."""
    descriptor = os.open(device, (os.O_RDWR if write else os.O_RDONLY) | os.O_DIRECT | os.O_CLOEXEC)
    try:
        yield Raw(descriptor)
    finally:
        os.close(descriptor)


def drop_page_cache(device: str) -> None:
    """Write back and drop a device's page cache; raises OSError.

    Before a purge: so that no dirty page is written after it. After a purge: programs that read through the cache
    (blkid, wipefs) would still see the old data as long as a process has the device open.
    """
    _ioctl(device, _BLKFLSBUF)


def reread_partition_table(device: str) -> None:
    """Reread the partition table; ignore the refusal for a device without partitions or held with O_EXCL."""
    with suppress(OSError):
        _ioctl(device, _BLKRRPART)


def _ioctl(device: str, request: int) -> None:
    descriptor = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(descriptor, request)
    finally:
        os.close(descriptor)
