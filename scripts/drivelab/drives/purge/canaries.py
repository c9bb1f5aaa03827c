"""Canaries: random data written at known places before a purge, which must not be readable after it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from drivelab.drives import ata, nvme, scsi
from drivelab.drives.approved import HeldDevice
from drivelab.drives.raw import COUNT, Geometry, Raw, opened, places

__all__ = ["COUNT", "Geometry", "Raw", "Sample", "declared_byte", "opened", "places"]

_BLKFLSBUF = 0x1261
_BLKRRPART = 0x125F
"""linux/fs.h"""


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


@dataclass(frozen=True)
class Sample:
    """What the drive returned for several reads."""

    contents: tuple[bytes | None, ...]
    """None where the read failed."""


def write(device: str, geometry: Geometry) -> dict[int, bytes]:
    """Write canaries and read them back; return offset to data. Raises OSError if the drive does not keep them.

    If a drive silently dropped writes, the whole verification would be worthless.
    """
    canaries = {offset: os.urandom(geometry.chunk_bytes) for offset in places(geometry)}
    with opened(device, write=True) as drive:
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


_DLFEAT_BYTE = {1: 0x00, 2: 0xFF}
"""DLFEAT bits 2:0 (NVM Command Set, Identify Namespace); 0 declares nothing."""


def declared_byte(device: HeldDevice) -> int | None:
    """Return the value of every byte of a deallocated block, or None if the drive declares none.

    NVMe: DLFEAT; ATA: "deterministic read zeros after TRIM"; SCSI: LBPRZ (SBC-4, READ CAPACITY (16)).
    """
    if device.name.startswith("nvme"):
        answer = nvme.id_ns(device.path) or {}
        return _DLFEAT_BYTE.get((nvme.whole(answer.get("dlfeat")) or 0) & 0x7)
    if device.name.startswith("loop"):
        return 0x00  # a hole in the file
    if not device.name.startswith("sd"):
        return None
    drive = ata.identify(device.path)
    if drive is not None:
        return 0x00 if drive.after_trim == "zeros" else None
    return 0x00 if scsi.unmapped_reads_zeros(device.path) else None
