"""Read and write a drive past the page cache, at places all over it."""

from __future__ import annotations

import mmap
import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise


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


COUNT = 64
_CHUNK_BYTES = 4096


@dataclass(frozen=True)
class Geometry:
    """Size and block length of a drive, which limit where canaries can be."""

    capacity_bytes: int
    logical_block_bytes: int

    @property
    def chunk_bytes(self) -> int:
        """Length of a canary."""
        return max(_CHUNK_BYTES, self.logical_block_bytes)


def places(geometry: Geometry, count: int = COUNT, rng: random.Random | None = None) -> list[int]:
    """Return offsets in bytes: the first chunk, the last, and a random one in each of `count` equal parts.

    One in each part: then no unpurged region as long as two parts can escape. First and last, because partition
    tables are there.
    """
    rng = rng or random.SystemRandom()
    chunks = geometry.capacity_bytes // geometry.chunk_bytes
    count = min(count, chunks)
    edges = [index * chunks // count for index in range(count + 1)]
    drawn = {rng.randrange(low, high) for low, high in pairwise(edges)}
    return [chunk * geometry.chunk_bytes for chunk in sorted(drawn | {0, chunks - 1})]
