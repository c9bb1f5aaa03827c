"""Hard disks as block devices take at least the time of their model.

A busy machine makes them slower, never faster; so all limits are lower limits.
"""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from drivelab.virtual import manage
from drivelab.virtual.disk import Disk
from drivelab.virtual.model import DriveModel

pytestmark = pytest.mark.device

PAGE = 4096


@contextmanager
def reading(device: str) -> Iterator[tuple[int, mmap.mmap]]:
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
    try:
        with mmap.mmap(-1, 1 << 20) as buffer:
            yield descriptor, buffer
    finally:
        os.close(descriptor)


def seconds_of_reads(device: str, offsets: list[int], length: int = PAGE) -> float:
    """Read at these offsets, one after another, around the page cache."""
    with reading(device) as (descriptor, buffer):
        begun_s = time.monotonic()
        for offset in offsets:
            assert os.preadv(descriptor, [memoryview(buffer)[:length]], offset) == length
        return time.monotonic() - begun_s


def test_a_hard_disk_seeks_and_turns(run_directory: Path, model: DriveModel) -> None:
    disk = Disk(rpm=6000, track_seek_ms=2, full_seek_ms=10, outer_mib_s=40, inner_mib_s=20)
    device = manage.start("disk", replace(model, disk=disk)).device
    rng, pages = Random(1), model.capacity_bytes // PAGE
    scattered = [rng.randrange(pages) * PAGE for _ in range(60)]
    assert seconds_of_reads(device, scattered) > 60 * 2e-3  # seeks at least
    assert seconds_of_reads(device, [number << 20 for number in range(8)], 1 << 20) > 8 / 40
    assert seconds_of_reads(device, [number << 20 for number in range(8, 16)], 1 << 20) > 8 / 32  # inner half
