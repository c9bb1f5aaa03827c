"""Canaries: random data at known places, none of which may be read back after a purge."""

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
    """Where canaries can be."""

    capacity_bytes: int
    logical_block_bytes: int

    @property
    def chunk_bytes(self) -> int:
        """Length of a canary."""
        return max(_CHUNK_BYTES, self.logical_block_bytes)


@dataclass(frozen=True)
class Sample:
    """What was found at the places that were looked at."""

    contents: tuple[bytes | None, ...]
    """None where the drive gave an error."""


def places(geometry: Geometry, count: int = COUNT, rng: random.Random | None = None) -> list[int]:
    """Offsets in bytes: the first chunk, the last, and a random one in each of `count` equal parts of the drive.

    One in each part, so that a contiguous part as long as two of them cannot have escaped; first and last, because
    partition tables lie there.
    """
    rng = rng or random.SystemRandom()
    chunks = geometry.capacity_bytes // geometry.chunk_bytes
    count = min(count, chunks)
    edges = [index * chunks // count for index in range(count + 1)]
    inside = {rng.randrange(low, high) for low, high in pairwise(edges)}
    return [chunk * geometry.chunk_bytes for chunk in sorted(inside | {0, chunks - 1})]


def write(device: str, geometry: Geometry) -> dict[int, bytes]:
    """Write canaries and read them back; offset to data. Raises OSError where the drive does not keep them.

    A drive that swallows writes would make the whole verification worthless.
    """
    canaries = {offset: os.urandom(geometry.chunk_bytes) for offset in places(geometry)}
    with raw.opened(device, write=True) as drive:
        for offset, data in canaries.items():
            drive.write(offset, data)
        drive.sync()
        for offset, data in canaries.items():
            if drive.read(offset, len(data)) != data:
                raise OSError(f"what was written at byte {offset} does not read back")
    return canaries


def survivors(canaries: dict[int, bytes], sample: Sample, block_bytes: int) -> list[int]:
    """Offsets of canaries of which at least one logical block is still there."""
    return [
        offset
        for (offset, data), found in zip(canaries.items(), sample.contents, strict=True)
        if found is not None and _shares_a_block(data, found, block_bytes)
    ]


def _shares_a_block(one: bytes, other: bytes, block_bytes: int) -> bool:
    return any(
        one[start : start + block_bytes] == other[start : start + block_bytes]
        for start in range(0, len(one), block_bytes)
    )


def read(drive: Raw, offsets: Iterable[int], chunk_bytes: int, *, errors: bool = False) -> Sample:
    """What is at places; with `errors` a place that cannot be read is None, else OSError is raised."""
    return Sample(tuple(_read(drive, offset, chunk_bytes, errors) for offset in offsets))


def _read(drive: Raw, offset: int, length: int, errors: bool) -> bytes | None:
    try:
        return drive.read(offset, length)
    except OSError:
        if not errors:
            raise
        return None


def common_byte(contents: Sequence[bytes | None]) -> int | None:
    """The one value that all bytes have; None if they differ or some could not be read."""
    values = {byte for content in contents if content is not None for byte in set(content)}
    return values.pop() if len(values) == 1 and None not in contents else None
