"""Effects of I/O offsets and sizes on a drive, compared with theory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from drivelab.core.errors import CellFailed, UserError
from drivelab.fio.consistency import contradiction
from drivelab.fio.result import by_workload, check, read_result, read_slices
from drivelab.fio.series import read_series
from drivelab.plan.cell import Cell
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive
from drivelab.virtual_clock.workload import closed_loop

MIB = 1 << 20
WRITES = Cell("random", 0, 4096, threads=2, queue_depth=8, volume_bytes=4 * MIB)
READ_BESIDE = {"pattern": "random", "read_share": 100, "block_size_bytes": 8192, "threads": 3, "queue_depth": 2}
MakeModel = Callable[..., DriveModel]


def write(flash: FlashDrive, cell: Cell) -> dict[str, int]:
    """Run a cell; return the differences of the counters."""
    before = flash.counters()
    for _ in closed_loop(flash, cell, flash.active_until_us, Random(3)):
        pass
    return {name: value - before[name] for name, value in flash.counters().items()}


def filled(model: DriveModel) -> FlashDrive:
    flash = FlashDrive(model)
    write(flash, Cell("sequential", 0, 131072, threads=1, queue_depth=1, volume_bytes=model.capacity_bytes))
    return flash


def write_amplification(model: DriveModel, **changes: Any) -> float:
    """Return the steady-state value: eight capacities of random writes, then four that count."""
    flash = filled(model)
    cell = replace(WRITES, **changes)
    write(flash, replace(cell, volume_bytes=8 * model.capacity_bytes))
    counted = write(flash, replace(cell, volume_bytes=4 * model.capacity_bytes))
    return counted["nand_write_bytes"] / counted["host_write_bytes"]


def test_an_unaligned_write_touches_two_pages(small: MakeModel) -> None:
    """Without garbage collection (much spare flash, no cache) the drive programs exactly twice as much."""
    spacious = small(over_provisioning="400%", slc_cache="0B")
    written, taken_us = {}, {}
    for offset in (0, 512):
        flash = filled(spacious)
        begin_us = flash.active_until_us
        counted = write(flash, replace(WRITES, alignment_offset_bytes=offset, volume_bytes=MIB))
        assert counted["host_write_bytes"] == MIB
        written[offset], taken_us[offset] = counted["nand_write_bytes"], flash.active_until_us - begin_us
    assert written == {0: MIB, 512: 2 * MIB}
    assert taken_us[512] > 1.8 * taken_us[0], "it also reads two pages"


def test_a_sector_costs_a_page(small: MakeModel) -> None:
    flash = filled(small(over_provisioning="400%", slc_cache="0B", logical_block="512B"))
    counted = write(flash, replace(WRITES, block_size_bytes=512, volume_bytes=MIB))
    assert counted["host_write_bytes"] == MIB
    assert counted["nand_write_bytes"] == 8 * MIB


LARGER = {"capacity": "8MiB", "over_provisioning": "28%", "slc_cache": "0B"}
HOT = ({"range_share": 0.2, "share": 0.99}, {"range_share": 0.8, "share": 0.01})


@pytest.mark.parametrize("changes", [{"zones": HOT}, {"range_bytes": 4 * MIB}, {"range_share": 0.5, "segments": 16}])
def test_skewed_writes_lower_write_amplification(small: MakeModel, changes: dict[str, Any]) -> None:
    """Pages that are not rewritten stay together in full blocks, so all spare flash serves the other pages.

    Less skew has little or no effect, because greedy collection lets cold blocks keep their few invalid pages.
    """
    everywhere = write_amplification(small(**LARGER))
    assert everywhere > 2
    assert write_amplification(small(**LARGER), **changes) < 0.75 * everywhere


def test_an_unused_half_acts_as_over_provisioning(small: MakeModel) -> None:
    """The other half is empty: with 128 % of flash for 50 % of data there is almost nothing to move."""
    flash = FlashDrive(small(**LARGER))
    cell = replace(WRITES, range_bytes=4 * MIB, volume_bytes=64 * MIB)
    write(flash, cell)
    counted = write(flash, cell)
    assert counted["mapped_pages"] == 0
    assert flash.counters()["mapped_pages"] == 1024
    assert counted["nand_write_bytes"] < 1.25 * counted["host_write_bytes"]


def test_two_workloads_keep_their_queues(small: MakeModel, tmp_path: Path) -> None:
    """Each direction is one workload; all threads together keep 22 I/Os outstanding."""
    cell = replace(WRITES, volume_bytes=None, runtime_s=1.0, beside=READ_BESIDE)
    VirtualClockDrive(small(), tmp_path / "state").run(cell, tmp_path)
    result = read_result(tmp_path, cell)
    assert result.write.bytes == 4096 * result.write.ios > 0
    assert result.read.bytes == 8192 * result.read.ios > 0
    assert result.thread_time_s == pytest.approx(5 * result.runtime_s, rel=0.01)
    assert result.read.iops * result.read.mean_latency_us / 1e6 == pytest.approx(6, rel=0.05)  # Little's law
    assert result.write.iops * result.write.mean_latency_us / 1e6 == pytest.approx(16, rel=0.05)
    assert (tmp_path / "job.fio").read_text().count("[beside]") == 1


MIXED = {"pattern": "random", "read_share": 65, "block_size_bytes": 8192, "threads": 2, "queue_depth": 2}
TRIMS = {"pattern": "sequential", "read_share": 0, "operation": "trim", "block_size_bytes": 65536, "threads": 1,
         "queue_depth": 1, "rate_iops": 50.0}  # fmt: skip


def test_several_workloads_have_results_of_their_own(small: MakeModel, tmp_path: Path) -> None:
    """Each keeps its queue; the trims keep their rate; the whole has the sum of reads and writes."""
    cell = replace(WRITES, volume_bytes=None, runtime_s=1.0, slice_s=0.25, beside=(READ_BESIDE, MIXED, TRIMS))
    VirtualClockDrive(small(), tmp_path / "state").run(cell, tmp_path)
    result = read_result(tmp_path, cell)
    writes, reads, mixed, trims = by_workload(result, cell)
    assert writes.read.ios == reads.write.ios == mixed.trim.ios == trims.read.ios + trims.write.ios == 0
    assert mixed.read.ios / mixed.ios == pytest.approx(0.65, abs=0.1)
    assert (trims.ios, trims.bytes, result.trim.ios) == (50, 50 * 65536, 50)
    for part, outstanding in ((writes, 16), (reads, 6), (mixed, 4)):
        assert part.iops * part.mean_latency_us / 1e6 == pytest.approx(outstanding, rel=0.05)  # Little's law
    assert result.ios == writes.ios + reads.ios + mixed.ios
    assert result.iops == pytest.approx(writes.iops + reads.iops + mixed.iops)
    assert result.bins.total() == result.ios
    slices = read_slices(tmp_path, cell)
    assert [len(part.parts) for part in slices] == [4] * 4
    assert sum(part.parts[3].ios for part in slices) == 50
    assert contradiction(result, cell) is None
    assert read_series(tmp_path).bad == []


def test_a_cell_that_trims_frees_its_blocks(small: MakeModel, tmp_path: Path) -> None:
    drive = VirtualClockDrive(small(), tmp_path / "state")
    drive.run(replace(WRITES, pattern="sequential", block_size_bytes=65536), tmp_path)
    mapped = drive.counters()["mapped_pages"]
    cell = replace(WRITES, pattern="sequential", block_size_bytes=65536, operation="trim", range_share=0.5,
                   volume_bytes=small().capacity_bytes // 2)  # fmt: skip
    drive.run(cell, tmp_path)
    result = read_result(tmp_path, cell)
    assert (result.read.ios, result.write.ios) == (0, 0)
    assert result.bytes == result.trim.bytes == small().capacity_bytes // 2
    assert result.iops == result.trim.iops > 0
    assert drive.counters()["mapped_pages"] == pytest.approx(mapped - small().capacity_bytes // 2 // 4096, abs=64)


def test_a_missing_workload_of_two_fails(small: MakeModel, tmp_path: Path) -> None:
    alone = replace(WRITES, volume_bytes=None, runtime_s=1.0)
    VirtualClockDrive(small(), tmp_path / "state").run(alone, tmp_path)
    with pytest.raises(CellFailed, match="no I/O for one of the simultaneous workloads: reads"):
        read_result(tmp_path, replace(alone, beside=READ_BESIDE))


def test_an_early_end_of_one_of_two_workloads_fails(small: MakeModel, tmp_path: Path) -> None:
    cell = replace(WRITES, volume_bytes=None, runtime_s=1.0, beside=READ_BESIDE)
    VirtualClockDrive(small(), tmp_path / "state").run(cell, tmp_path)
    result = read_result(tmp_path, cell)
    short = replace(result, read=replace(result.read, runtime_s=0.5))
    with pytest.raises(CellFailed, match=r"ended after 0\.5 s"):
        check(short, cell)


def test_the_clock_refuses_cells_that_fio_cannot_run(small: MakeModel) -> None:
    with pytest.raises(UserError, match="does not combine"):
        write(FlashDrive(small()), replace(WRITES, zipf=1.2, segments=4))


def test_entropy_does_not_affect_a_drive_without_compression(small: MakeModel) -> None:
    full_entropy = write(FlashDrive(small()), WRITES)
    assert write(FlashDrive(small()), replace(WRITES, entropy=0.0)) == full_entropy
