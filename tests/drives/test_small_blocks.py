"""A virtual drive with 512-byte sectors in real time: the cost of unaligned and small writes, by its counters."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from drivelab.drives import sysfs
from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

pytestmark = [pytest.mark.device, pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")]

MIB = 1 << 20
ALIGNED = Cell("random", 0, 4096, threads=1, queue_depth=4, volume_bytes=MIB)


@pytest.fixture
def model() -> DriveModel:
    """A model with much spare flash, so that garbage collection adds no cost to writes."""
    keys = {"serial": "TEST-512", "capacity": "16MiB", "over_provisioning": "100%", "slc_cache": "0B"}
    return DriveModel.from_mapping("test", {**keys, "logical_block": "512B"})


def written(drive: manage.VirtualDrive, cell: Cell, folder: Path) -> dict[str, int]:
    """Run a cell; return the bytes that the drive received and programmed."""
    block = sysfs.logical_block_bytes(drive.device.removeprefix("/dev/"))
    assert block == 512
    (folder / "job.fio").write_text(job_text(cell, drive.device, "libaio", drive.capacity_bytes, block, 3))
    before = manage.counters(drive.name)
    subprocess.run(["fio", "job.fio"], cwd=folder, check=True, capture_output=True, timeout=60)
    after = manage.counters(drive.name)
    return {name: after[f"{name}_write_bytes"] - before[f"{name}_write_bytes"] for name in ("host", "nand")}


def test_unaligned_and_small_writes_cost_whole_pages(drive: manage.VirtualDrive, tmp_path: Path) -> None:
    fill = Cell("sequential", 0, 131072, threads=1, queue_depth=1, volume_bytes=drive.capacity_bytes)
    written(drive, fill, tmp_path)
    assert written(drive, ALIGNED, tmp_path) == {"host": MIB, "nand": MIB}
    assert written(drive, replace(ALIGNED, alignment_offset_bytes=512), tmp_path) == {"host": MIB, "nand": 2 * MIB}
    sectors = replace(ALIGNED, block_size_bytes=512, volume_bytes=MIB // 8)
    assert written(drive, sectors, tmp_path) == {"host": MIB // 8, "nand": MIB}
