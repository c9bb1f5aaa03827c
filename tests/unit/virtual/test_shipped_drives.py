"""The two demo drives show what a study needs: a write cliff, an early steady state, and a known winner."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path

import pytest

from drivelab.criteria.steady_state import determine
from drivelab.fio.result import read_result, read_slices
from drivelab.plan.cell import Cell
from drivelab.plan.yaml_file import load_yaml
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive

CONFIG = Path(__file__).parents[3] / "config/virtual_drives.yaml"
SATURATION = Cell("random", 0, 4096, threads=2, queue_depth=8, runtime_s=40.0, slice_s=1.0)
TRACKED = ((0, 4096), (65, 65536), (100, 1 << 20))
MOST_ROUNDS = 25


def drive(name: str, folder: Path) -> VirtualClockDrive:
    return VirtualClockDrive(DriveModel.from_mapping(name, load_yaml(CONFIG)[name]), folder / f"{name}.state")


def saturation(name: str, folder: Path) -> list[float]:
    """Return the IOPS of each second of random writes on a fresh drive."""
    directory = folder / name
    directory.mkdir()
    drive(name, folder).run(SATURATION, directory)
    return [result.iops for result in read_slices(directory, SATURATION)]


def test_write_saturation_shows_a_cliff_and_more_spare_flash_wins(tmp_path: Path) -> None:
    by_drive = {name: saturation(name, tmp_path) for name in ("op7", "op28")}
    steady = {name: statistics.fmean(iops[-10:]) for name, iops in by_drive.items()}
    for name, iops in by_drive.items():
        assert len(iops) == 40
        assert 8000 < iops[0] < 12000
        assert iops[0] > 2 * steady[name]
        assert 1200 < steady[name] < 6000
        assert max(iops[-10:]) - min(iops[-10:]) < 0.2 * steady[name]
        assert sum(iops) * 4096 > 4 * (32 << 20)
    assert steady["op28"] > 1.3 * steady["op7"]


@pytest.mark.parametrize("name", ["op7", "op28"])
def test_short_rounds_reach_steady_state(name: str, tmp_path: Path) -> None:
    clock_drive = drive(name, tmp_path)

    def iops(cell: Cell) -> float:
        directory = tmp_path / f"{clock_drive.now_us}"
        directory.mkdir()
        clock_drive.run(cell, directory)
        return read_result(directory, cell).iops

    iops(Cell("sequential", 0, 128 << 10, threads=1, queue_depth=32, volume_bytes=64 << 20))
    assert 1e6 < clock_drive.now_us < 3e6
    history: dict[tuple[int, int], list[float]] = defaultdict(list)
    for number in range(1, MOST_ROUNDS + 1):
        for read_share in (100, 65, 0):
            for block in (1 << 20, 65536, 4096):
                cell = Cell("random", read_share, block, threads=2, queue_depth=8, runtime_s=1.0)
                history[read_share, block].append(iops(cell))
        if number >= 5 and all(determine(history[variable]).steady for variable in TRACKED):
            break
    assert number <= 9
    assert 10_000 < history[100, 4096][-1] < 12_000
