"""Prove that nothing was written beside a partition: compare places in everything else on its drive, before and after.

drivelab writes through the partition's own node, which the kernel limits to the partition. The comparison would show an
error in drivelab, in the kernel, or in a drive that does not keep to the range of a discard.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from drivelab.core.errors import UserError
from drivelab.drives import node, raw
from drivelab.drives.composition import Extent, extent_of, gaps, partitions
from drivelab.drives.raw import Geometry
from drivelab.drives.sysfs import block_dir, capacity_bytes, logical_block_bytes

_TABLE_BYTES = 64 << 10
"""At both ends of a drive, read whole: more than a GPT with its backup (UEFI Specification, 5.3)."""
_COUNT = 16
"""Random places in each area, besides its first and last block."""
_CHUNK_BYTES = 4096


@dataclass(frozen=True)
class Area:
    """A part of a drive that must stay unchanged."""

    device: str
    """Kernel name of the partition, or of the drive for what lies between partitions. A partition is read through its
    own node, so that the kernel first writes back what a program has written there."""
    words: str
    places: tuple[tuple[int, int], ...]
    """Offset on the device and length, in bytes."""


def areas(name: str, sys_root: Path = Path("/sys"), rng: random.Random | None = None) -> list[Area]:
    """Return all areas beside a partition, given by kernel name: the other partitions, the gaps, and both ends."""
    disk = block_dir(name, sys_root).parent.name
    size, block = capacity_bytes(disk, sys_root), logical_block_bytes(disk, sys_root)
    extents = [extent_of(part, sys_root) for part in partitions(disk, sys_root)]
    own = next(extent for extent in extents if extent.name == name)
    found = [
        Area(extent.name, extent.name, _places(Extent(extent.name, 0, extent.length), block, rng))
        for extent in extents
        if extent is not own
    ]
    for gap in gaps(extents, size):
        found.append(Area(disk, f"the gap at byte {gap.begin} of {disk}", _places(gap, block, rng)))
    first = min(_TABLE_BYTES, own.begin)
    last = max(size - _TABLE_BYTES, own.end)
    if first:
        found.append(Area(disk, f"the partition table of {disk}", ((0, first),)))
    if last < size:
        found.append(Area(disk, f"the end of {disk}", ((last, size - last),)))
    return found


def _places(extent: Extent, block: int, rng: random.Random | None) -> tuple[tuple[int, int], ...]:
    chunk = max(_CHUNK_BYTES, block)
    if extent.length >= chunk:
        offsets = raw.places(Geometry(extent.length // chunk * chunk, block), _COUNT, rng)
    elif extent.length >= block:  # the container of logical partitions
        chunk, offsets = block, [0]
    else:
        return ()
    return tuple((extent.begin + offset, chunk) for offset in sorted({*offsets, extent.length - chunk}))


@dataclass(frozen=True)
class Neighbours:
    """The areas beside a partition, with the checksum of each place when the guard approved the partition."""

    areas: tuple[Area, ...]
    checksums: tuple[str, ...]

    @classmethod
    def of(cls, name: str) -> Neighbours:
        """Read the areas beside a partition; raises UserError if one cannot be read."""
        found = tuple(area for area in areas(name) if area.places)
        try:
            return cls(found, tuple(map(_checksum, found)))
        except OSError as error:
            raise UserError(
                f"what lies beside {name} on its drive cannot be read ({error}), so drivelab could not prove that it "
                "leaves it untouched. Nothing was written. Check dmesg."
            ) from None

    def verify(self, label: str) -> dict[str, object]:
        """Compare all areas; return the facts for the journal. Raises UserError if an area has changed."""
        try:
            changed = self.changes()
        except OSError as error:
            raise UserError(
                f"{label}: what lies beside the partition cannot be read any more ({error}), so drivelab cannot prove "
                "that it left it untouched. Check dmesg."
            ) from None
        if changed:
            raise UserError(_alarm(label, changed))
        return {
            "areas": [area.words for area in self.areas],
            "places": sum(len(area.places) for area in self.areas),
            "changed": [],
        }

    def changes(self) -> list[str]:
        """Return the areas that have changed, in words; raises OSError if one cannot be read."""
        return [
            area.words for area, before in zip(self.areas, self.checksums, strict=True) if _checksum(area) != before
        ]

    @contextmanager
    def compared_at_end(self, label: str) -> Iterator[None]:
        """Verify at the end; after an error print the changes, if any, and keep the error."""
        try:
            yield
        except BaseException:
            try:
                changed = self.changes()
            except OSError:  # the drive is gone, which the error says
                changed = []
            if changed:
                print(f"drivelab: {_alarm(label, changed)}", file=sys.stderr)
            raise
        self.verify(label)


def _alarm(label: str, changed: list[str]) -> str:
    return (
        f"DATA OUTSIDE OF THE PARTITION CHANGED while drivelab used '{label}': {', '.join(changed)}. drivelab writes "
        "to the partition only, so the drive, the kernel or another program changed it. Check the file systems there, "
        "and do not use this partition for tests again."
    )


def _checksum(area: Area) -> str:
    """Return one checksum over all places of an area; raises OSError."""
    digest = hashlib.sha256()
    with node.opened(f"/dev/{area.device}") as opened:
        if opened.name != area.device:
            raise OSError(f"/dev/{area.device} is a node of {opened.name}")
        with raw.opened(opened.path) as device:
            for offset, length in area.places:
                digest.update(device.read(offset, length))
    return digest.hexdigest()
