"""Cells with a limit of I/Os per second on the virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.fio.result import read_result, read_slices
from drivelab.fio.series import read_series
from drivelab.plan.cell import Cell
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive
from drivelab.virtual_clock.workload import closed_loop, paced_loop

READS = Cell("random", 100, 4096, threads=2, queue_depth=4, runtime_s=2.0, rate_iops=500.0)
Completions = Generator[tuple[float, float, bool, int], bool | None, None]


def loop(service_us: float, depths: list[int], interval_us: float, end_us: float) -> Completions:
    """Run a loop in which every I/O takes the same time."""

    def issue(thread: int, now_us: float) -> tuple[float, float, bool, int]:
        return now_us + service_us, now_us, True, 4096 * (thread + 1)

    return paced_loop(issue, depths, [interval_us] * len(depths), 0.0, end_us, float("inf"))


@pytest.mark.parametrize("rate_iops", [1.0, 37.5, 500.0])
def test_a_rate_within_the_drives_limit_is_kept_exactly(
    small: Callable[..., DriveModel], tmp_path: Path, rate_iops: float
) -> None:
    """I/Os are due at the start and then at equal intervals; for each thread the interval is twice as long."""
    drive = VirtualClockDrive(small(), tmp_path / "state")
    cell = replace(READS, rate_iops=rate_iops, slice_s=0.5)
    drive.run(cell, tmp_path)
    result = read_result(tmp_path, cell)
    assert result.ios == 2 * -(-rate_iops // 1)
    assert result.runtime_s == 2.0
    assert drive.now_us == 2e6
    assert len(read_slices(tmp_path, cell)) == 4
    by_second = [row["iops"] for row in read_series(tmp_path).rows]
    assert by_second[0] == pytest.approx(rate_iops, abs=1)
    assert sum(by_second) == result.ios


def test_a_rate_above_the_drives_limit_changes_nothing(small: Callable[..., DriveModel]) -> None:
    free = len(list(closed_loop(FlashDrive(small()), replace(READS, rate_iops=None), 0.0, Random(1))))
    limited = len(list(closed_loop(FlashDrive(small()), replace(READS, rate_iops=1e9), 0.0, Random(1))))
    assert limited == pytest.approx(free, rel=0.01)


@settings(max_examples=100, deadline=None)
@given(
    st.floats(1.0, 5000.0),
    st.lists(st.integers(1, 8), min_size=1, max_size=4),
    st.floats(10.0, 3000.0),
)
def test_ios_are_never_early_and_queues_never_exceeded(
    service_us: float, depths: list[int], interval_us: float
) -> None:
    done = list(loop(service_us, depths, interval_us, 50_000.0))
    assert [completion[0] for completion in done] == sorted(completion[0] for completion in done)
    for thread, depth in enumerate(depths):
        issues = sorted(completion[1] for completion in done if completion[3] == 4096 * (thread + 1))
        assert all(issued >= index * interval_us for index, issued in enumerate(issues))
        assert all(issued < 50_000.0 for issued in issues)
        ends = sorted(issued + service_us for issued in issues)
        assert all(issued >= ends[index - depth] for index, issued in enumerate(issues) if index >= depth)
        keeps_up = service_us <= interval_us
        if keeps_up:
            assert len(issues) == -(-50_000.0 // interval_us)


def test_a_late_thread_catches_up() -> None:
    """The first I/O takes ten intervals: then ten I/Os are due, and the queue takes four at a time."""
    times = iter([10_000.0])

    def issue(_: int, now_us: float) -> tuple[float, float, bool, int]:
        return now_us + next(times, 1.0), now_us, True, 4096

    done = list(paced_loop(issue, [4], [1000.0], 0.0, 20_000.0, float("inf")))
    issued = sorted(completion[1] for completion in done)
    assert len(issued) == 20
    assert issued[:2] == [0.0, 10_000.0]
    assert issued[11:] == [1000.0 * index for index in range(11, 20)]


def test_a_mix_keeps_its_share(small: Callable[..., DriveModel]) -> None:
    done = list(closed_loop(FlashDrive(small()), replace(READS, read_share=70), 0.0, Random(1)))
    assert len(done) == 1000
    assert sum(reads for _, _, reads, _ in done) == pytest.approx(700, abs=75)


def test_a_volume_ends_the_loop(small: Callable[..., DriveModel]) -> None:
    done = list(closed_loop(FlashDrive(small()), replace(READS, volume_bytes=40960), 0.0, Random(1)))
    assert sum(size for *_, size in done) == 40960
    assert [completion[1] for completion in done] == sorted(completion[1] for completion in done)
    assert {round(after[1] - before[1]) for before, after in pairwise(done)} == {0, 4000}


def test_sending_true_ends_the_loop() -> None:
    """The first I/O takes five intervals, then two are issued: one of them is in flight when True is sent."""
    completions = loop(5000.0, [2], 1000.0, 1e9)
    assert [next(completions)[1] for _ in range(2)] == [0.0, 5000.0]
    assert completions.send(True)[1] == 5000.0
    assert list(completions) == []
