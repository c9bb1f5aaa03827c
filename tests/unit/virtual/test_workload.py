"""Closed loops and loops at a rate: order, sizes, shares and ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.fio.result import read_result, read_slices
from drivelab.fio.series import read_series
from drivelab.plan.cell import Cell
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.cells import VirtualClockDrive
from drivelab.virtual_clock.workload import closed_loop, paced_loop

CELL = Cell("random", 50, 4096, threads=2, queue_depth=4, runtime_s=0.5)
SIZES = replace(CELL, block_size_bytes=8192, block_size_max_bytes=32768, runtime_s=2.0)


class Spy(FlashDrive):
    """A drive that records its requests."""

    def __init__(self, model: DriveModel) -> None:
        super().__init__(model)
        self.requests: list[tuple[float, str, int, int]] = []

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        self.requests.append((now_us, operation, offset, length))
        return super().submit(now_us, operation, offset, length)


@pytest.fixture
def spy(small: Callable[..., DriveModel]) -> Spy:
    return Spy(small())


def run(spy: Spy, cell: Cell, seed: int = 1) -> list[tuple[float, float, bool, int]]:
    return list(closed_loop(spy, cell, 0.0, Random(seed)))


def depths(completions: list[tuple[float, float, bool, int]]) -> set[int]:
    """Return the numbers of outstanding I/Os that occur."""
    events = sorted([(done, -1) for done, *_ in completions] + [(issued, 1) for _, issued, *_ in completions])
    seen, depth = set(), 0
    for _, change in events:
        depth += change
        seen.add(depth)
    return seen


def test_the_queue_is_kept_full_until_the_runtime_is_over(spy: Spy) -> None:
    completions = run(spy, CELL)
    assert max(depths(completions)) == 8
    assert max(issued for _, issued, *_ in completions) < 0.5e6 <= max(done for done, *_ in completions)
    assert [done for done, *_ in completions] == sorted(done for done, *_ in completions)
    assert len(completions) == len(spy.requests)
    times = [now_us for now_us, *_ in spy.requests]
    assert times == sorted(times), "submissions never go back in time"


def test_a_volume_ends_the_loop_exactly(spy: Spy) -> None:
    cell = replace(CELL, runtime_s=None, volume_bytes=100 * 4096 + 1)
    assert sum(size for *_, size in run(spy, cell)) == 101 * 4096
    several = replace(SIZES, runtime_s=None, volume_bytes=1_000_000)
    assert 1_000_000 <= sum(size for *_, size in run(spy, several)) < 1_000_000 + 32768


@pytest.mark.parametrize(("volume_bytes", "by_time"), [(10 * 4096, False), (1 << 40, True)])
def test_the_loop_ends_at_runtime_or_volume(spy: Spy, volume_bytes: int, by_time: bool) -> None:
    completions = run(spy, replace(CELL, volume_bytes=volume_bytes))
    assert (completions[-1][0] >= 0.5e6) is by_time


def test_a_cell_without_an_end_is_refused(spy: Spy) -> None:
    with pytest.raises(ValueError, match="runtime or a volume"):
        run(spy, replace(CELL, runtime_s=None))


@pytest.mark.parametrize("read_share", [0, 65, 100])
def test_the_mix_has_the_requested_share(spy: Spy, read_share: int) -> None:
    run(spy, replace(CELL, read_share=read_share))
    counts = Counter(operation for _, operation, *_ in spy.requests)
    assert counts["read"] / counts.total() == pytest.approx(read_share / 100, abs=0.03)
    assert counts["trim"] == 0


def test_random_offsets_cover_the_active_range_and_nothing_else(spy: Spy) -> None:
    run(spy, replace(CELL, range_start=0.25, range_share=0.5, runtime_s=2.0))
    offsets = {offset for _, _, offset, _ in spy.requests}
    assert offsets == set(range(1 << 20, 3 << 20, 4096))


def test_each_thread_writes_sequentially_in_its_own_region(spy: Spy) -> None:
    cell = Cell("sequential", 0, 65536, threads=4, queue_depth=1, volume_bytes=3 * (4 << 20))
    run(spy, cell)
    by_region: dict[int, list[int]] = {}
    for _, _, offset, _ in spy.requests:
        by_region.setdefault(offset >> 20, []).append(offset)
    assert len(by_region) == 4
    for region, offsets in by_region.items():
        start = region << 20
        assert offsets == [start + index % 16 * 65536 for index in range(len(offsets))]


@pytest.mark.parametrize(
    ("cell", "block"),
    [(Cell("sequential", 0, 1 << 20, threads=5, queue_depth=1, runtime_s=1.0), "1024KiB"),
     (replace(SIZES, range_share=0.006), "32KiB")],
)  # fmt: skip
def test_a_range_without_room_for_the_largest_block_is_a_user_error(spy: Spy, cell: Cell, block: str) -> None:
    with pytest.raises(UserError, match=f"does not hold a block of {block}"):
        run(spy, cell)


@pytest.mark.parametrize("pattern", ["random", "sequential"])
def test_sizes_are_drawn_evenly_from_the_multiples(spy: Spy, pattern: str) -> None:
    completions = run(spy, replace(SIZES, pattern=pattern, threads=1))
    sizes = Counter(size for *_, size in completions)
    assert set(sizes) == {8192, 16384, 24576, 32768}
    assert sizes == Counter(size for *_, size in spy.requests)
    for number in sizes.values():
        assert number / sizes.total() == pytest.approx(0.25, abs=0.05)


def test_random_blocks_of_several_sizes_fill_the_range(spy: Spy) -> None:
    run(spy, replace(SIZES, range_start=0.25, range_share=0.125))
    assert {offset % 8192 for _, _, offset, _ in spy.requests} == {0}
    assert min(offset for _, _, offset, _ in spy.requests) == 1 << 20
    assert max(offset + size for _, _, offset, size in spy.requests) == 3 << 19


def test_sequential_blocks_of_several_sizes_are_contiguous(spy: Spy) -> None:
    run(spy, replace(SIZES, pattern="sequential", read_share=0, threads=2, range_share=0.5))
    by_region: dict[int, list[tuple[int, int]]] = {}
    for _, _, offset, size in spy.requests:
        by_region.setdefault(offset >> 20, []).append((offset, size))
    assert set(by_region) == {0, 1}
    for region, blocks in by_region.items():
        wraps = 0
        for (offset, size), (following, length) in pairwise(blocks):
            if following != offset + size:
                assert following == region << 20
                assert offset + size + length > (region + 1) << 20
                wraps += 1
        assert wraps >= 1
        assert max(offset + size for offset, size in blocks) <= (region + 1) << 20


def test_each_synchronous_write_waits_for_its_flush(spy: Spy) -> None:
    """A commit is a write and a flush, one after the other, so the drive's buffer does not hide the programming."""
    cell = Cell("sequential", 0, 4096, threads=1, queue_depth=1, runtime_s=0.05, synchronous=True)
    commits = run(spy, cell)
    operations = [operation for _, operation, *_ in spy.requests]
    assert operations == ["write", "flush"] * len(commits)
    ends = [done for done, *_ in commits]
    assert [issued for _, issued, *_ in commits][1:] == ends[:-1]
    programmed_us = spy.model.slc_program_us  # the first writes go to the SLC cache
    assert min(done - issued for done, issued, *_ in commits) > programmed_us
    buffered = run(Spy(spy.model), replace(cell, synchronous=None))
    assert buffered[0][0] - buffered[0][1] < programmed_us


READS = Cell("random", 100, 4096, threads=2, queue_depth=4, runtime_s=2.0, rate_iops=500.0)
Completions = Generator[tuple[float, float, bool, int], bool | None, None]


def paced(service_us: float, depths: list[int], interval_us: float, end_us: float) -> Completions:
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
@given(st.floats(1.0, 5000.0), st.lists(st.integers(1, 8), min_size=1, max_size=4), st.floats(10.0, 3000.0))
def test_ios_are_never_early_and_queues_never_exceeded(
    service_us: float, depths: list[int], interval_us: float
) -> None:
    done = list(paced(service_us, depths, interval_us, 50_000.0))
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
    completions = paced(5000.0, [2], 1000.0, 1e9)
    assert [next(completions)[1] for _ in range(2)] == [0.0, 5000.0]
    assert completions.send(True)[1] == 5000.0
    assert list(completions) == []
