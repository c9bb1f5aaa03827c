"""Canaries: random data written at known places before a purge, which must not be readable after it."""

from __future__ import annotations

import os
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from drivelab.drives.purge import raw
from drivelab.drives.purge.raw import Raw

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


@dataclass(frozen=True)
class Sample:
    """What the drive returned for several reads."""

    contents: tuple[bytes | None, ...]
    """None where the read failed."""


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


def write(device: str, geometry: Geometry) -> dict[int, bytes]:
    """Write canaries and read them back; return offset to data. Raises OSError if the drive does not keep them.

    If a drive silently dropped writes, the whole verification would be worthless.
    """
    canaries = {offset: os.urandom(geometry.chunk_bytes) for offset in places(geometry)}
    with raw.opened(device, write=True) as drive:
        for offset, data in canaries.items():
            drive.write(offset, data)
        drive.sync()
        for offset, data in canaries.items():
            if drive.read(offset, len(data)) != data:
                raise OSError(f"the data written at byte {offset} does not read back")
    return canaries


def survivors(canaries: dict[int, bytes], sample: Sample, block_bytes: int) -> list[int]:
    """Return the offsets of canaries with at least one surviving logical block."""
    return [
        offset
        for (offset, data), content in zip(canaries.items(), sample.contents, strict=True)
        if content is not None and _shares_a_block(data, content, block_bytes)
    ]


def _shares_a_block(data: bytes, content: bytes, block_bytes: int) -> bool:
    return any(
        data[start : start + block_bytes] == content[start : start + block_bytes]
        for start in range(0, len(data), block_bytes)
    )


def read(drive: Raw, offsets: Iterable[int], chunk_bytes: int, *, errors: bool = False) -> Sample:
    """Read the chunks at offsets; with `errors` an unreadable chunk is None, otherwise it raises OSError."""
    return Sample(tuple(_read(drive, offset, chunk_bytes, errors) for offset in offsets))


def _read(drive: Raw, offset: int, length: int, errors: bool) -> bytes | None:
    try:
        return drive.read(offset, length)
    except OSError:
        if not errors:
            raise
        return None


def common_byte(contents: Sequence[bytes | None]) -> int | None:
    """Return the value that all bytes share; None if bytes differ or a read failed."""
    values = {byte for content in contents if content is not None for byte in set(content)}
    return values.pop() if len(values) == 1 and None not in contents else None
