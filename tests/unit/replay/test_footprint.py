"""Places and sizes of a cell's I/Os, with real fio on a file and on the virtual clock."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from drivelab.fio.job import job_text
from drivelab.plan.cell import Cell
from drivelab.plan.ranges import parts_of
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import DriveModel
from drivelab.virtual_clock.access import zipf_blocks
from drivelab.virtual_clock.workload import closed_loop

MIB = 1 << 20
CAPACITY = 64 * MIB
WRITES = Cell("random", 0, 4096, threads=1, queue_depth=1, volume_bytes=16 * MIB)

Requests = list[tuple[str, int, int]]
"""Operation, offset and length of each request."""
Footprint = Callable[[Cell], Requests]


def by_fio(folder: Path, cell: Cell) -> Requests:
    """Run fio's null engine; each section logs its requests in a separate file."""
    target = folder / "target"
    with target.open("wb") as file:
        file.truncate(CAPACITY)
    text = job_text(cell, str(target), "null", CAPACITY, 512, 7).replace("direct=1\n", "")
    text = text.replace("time_based=1\n", f"io_size={4 * MIB}\n")
    first, *second = text.split("[beside]\n")
    sections = [first, *(f"[beside]\n{section}" for section in second)]
    job = folder / "job.fio"
    job.write_text("".join(f"{section}write_iolog={folder}/log{number}\n" for number, section in enumerate(sections)))
    done = subprocess.run(["fio", str(job)], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    requests: Requests = []
    for number in range(len(sections)):
        rows = [line.split() for line in (folder / f"log{number}").read_text().splitlines()]
        requests += [(row[2], int(row[3]), int(row[4])) for row in rows if row[2:3] in (["read"], ["write"])]
    return requests


class Spy(FlashDrive):
    """A drive that records requests and completes them at once."""

    def __init__(self) -> None:
        model = {"serial": "SPY", "capacity": f"{CAPACITY}B", "over_provisioning": "12%", "enabled": False}
        super().__init__(DriveModel.from_mapping("spy", model))
        self.seen: Requests = []

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        assert 0 <= offset <= offset + length <= CAPACITY
        self.seen.append((operation, offset, length))
        return now_us + 100.0


def on_the_clock(cell: Cell) -> Requests:
    spy = Spy()
    for _ in closed_loop(spy, cell, 0.0, Random(7)):
        pass
    return spy.seen


@pytest.fixture(params=["fio", "virtual clock"])
def footprint(request: pytest.FixtureRequest, tmp_path: Path) -> Footprint:
    if request.param == "virtual clock":
        return on_the_clock
    if shutil.which("fio") is None:
        pytest.skip("fio is not installed")
    return lambda cell: by_fio(tmp_path, cell)


def within_five_deviations(count: int, total: int, share: float) -> bool:
    """Return whether a binomial count lies within five standard deviations (1 in 2 million lies outside)."""
    return bool(abs(count - total * share) <= 5 * (total * share * (1 - share)) ** 0.5)


SIZES = (
    {"block_size_bytes": 512, "share": 0.04},
    {"block_size_bytes": 1024, "share": 0.01},
    {"block_size_bytes": 4096, "share": 0.67},
    {"block_size_bytes": 65536, "share": 0.28},
)


@pytest.mark.parametrize("pattern", ["random", "sequential"])
def test_sizes_have_their_shares(footprint: Footprint, pattern: str) -> None:
    cell = replace(WRITES, pattern=pattern, block_size_bytes=512, block_sizes=SIZES, volume_bytes=60 * MIB)
    requests = footprint(cell)
    counts = Counter(length for _, _, length in requests)
    assert set(counts) == {512, 1024, 4096, 65536}
    for size in SIZES:
        assert within_five_deviations(counts[int(size["block_size_bytes"])], len(requests), size["share"])
    if pattern == "sequential":
        assert all(offset == before + length for (_, before, length), (_, offset, _) in pairwise(requests))
    else:
        assert max(offset + length for _, offset, length in requests) > 63 * MIB
        assert any(offset % 4096 for _, offset, _ in requests)


def test_sizes_of_a_distribution_are_aligned_as_requested(footprint: Footprint) -> None:
    sizes = ({"block_size_bytes": 512, "share": 0.3}, {"block_size_bytes": 4096, "share": 0.7})
    cell = replace(WRITES, block_size_bytes=512, block_sizes=sizes, alignment_bytes=4096)
    assert {offset % 4096 for _, offset, _ in footprint(cell)} == {0}


@pytest.mark.parametrize("shift", [512, 2048, 4096 + 512])
def test_an_alignment_offset_shifts_every_request(footprint: Footprint, shift: int) -> None:
    requests = footprint(replace(WRITES, alignment_offset_bytes=shift, range_bytes=MIB))
    assert {offset for _, offset, _ in requests} == set(range(shift, MIB + shift, 4096))


def test_an_unaligned_range_stays_on_the_drive(footprint: Footprint) -> None:
    requests = footprint(replace(WRITES, alignment_offset_bytes=512, volume_bytes=256 * MIB))
    offsets = {offset for _, offset, _ in requests}
    assert {offset % 4096 for offset in offsets} == {512}
    assert (min(offsets), max(offsets)) == (512, CAPACITY - 8192 + 512)


def test_an_unaligned_stretch_of_sequential_blocks(footprint: Footprint) -> None:
    requests = footprint(replace(WRITES, pattern="sequential", alignment_offset_bytes=512, range_bytes=MIB))
    assert [offset for _, offset, _ in requests] == [512 + index % 256 * 4096 for index in range(4096)]


def test_blocks_larger_than_the_alignment_stay_in_the_range(footprint: Footprint) -> None:
    cell = replace(WRITES, block_size_bytes=16384, alignment_bytes=4096, range_bytes=MIB, volume_bytes=128 * MIB)
    requests = footprint(cell)
    offsets = {offset for _, offset, _ in requests}
    assert offsets == set(range(0, MIB - 16384 + 1, 4096))


def test_blocks_smaller_than_the_alignment(footprint: Footprint) -> None:
    requests = footprint(replace(WRITES, block_size_bytes=512, alignment_bytes=4096, range_bytes=MIB, volume_bytes=MIB))
    assert {(offset, length) for _, offset, length in requests} == {(offset, 512) for offset in range(0, MIB, 4096)}


ZONES = ({"range_share": 0.05, "share": 0.5}, {"range_share": 0.15, "share": 0.3}, {"range_share": 0.8, "share": 0.2})


def test_zones_get_their_shares_and_are_covered(footprint: Footprint) -> None:
    requests = footprint(replace(WRITES, zones=ZONES, range_start=0.25, range_share=0.5, volume_bytes=80 * MIB))
    blocks = [(offset - CAPACITY // 4) // 4096 for _, offset, _ in requests]
    bounds = (0, 8192 * 5 // 100, 8192 * 20 // 100, 8192)
    for zone, (low, high) in zip(ZONES, pairwise(bounds), strict=True):
        inside = [block for block in blocks if low <= block < high]
        assert within_five_deviations(len(inside), len(blocks), zone["share"])
        assert max(inside) - min(inside) > 0.99 * (high - low) - 3
    assert min(blocks) >= 0
    assert max(blocks) < 8192


@pytest.mark.parametrize("exponent", [0.8, 1.2])
def test_zipf_prefers_the_same_blocks(footprint: Footprint, exponent: float) -> None:
    """The share of the most popular block is 1 / zeta; ranks are spread over the blocks by fio's hash."""
    requests = footprint(replace(WRITES, zipf=exponent, range_start=0.5, range_bytes=16 * MIB, volume_bytes=64 * MIB))
    counts = Counter(offset - CAPACITY // 2 for _, offset, _ in requests)
    zeta = sum(rank**-exponent for rank in range(1, 4097))
    assert within_five_deviations(counts[0], len(requests), 1 / zeta)
    assert within_five_deviations(counts[1003 * 4096], len(requests), 0.5**exponent / zeta)
    assert [place for place, _ in counts.most_common(2)] == [0, 1003 * 4096]
    assert max(counts) < 16 * MIB


def test_zipf_stays_within_a_tiny_range() -> None:
    for blocks in (1, 2, 3):
        draw = zipf_blocks(1.2, blocks, Random(1))
        assert all(0 <= draw() < blocks for _ in range(2000))


@pytest.mark.parametrize(
    ("number", "share", "read_share"), [(8, 0.25, 0), (7, 0.3, 50), (3, 1.0, 0), (2048, 0.25, 100), (1, 0.5, 0)]
)
def test_segments_take_turns_and_are_covered(footprint: Footprint, number: int, share: float, read_share: int) -> None:
    cell = replace(WRITES, segments=number, range_share=share, read_share=read_share, volume_bytes=96 * MIB)
    (part,) = parts_of(cell, CAPACITY, 512)
    assert part.segments is not None
    length, distance = part.segments.length_bytes, part.segments.distance_bytes
    assert share * CAPACITY - number * 2 * 4096 < number * length <= share * CAPACITY
    assert distance * number < CAPACITY + number * 4096
    offsets = [offset for _, offset, _ in footprint(cell)]
    passes = CAPACITY // 4096  # fio returns to the first segment after I/O of the range's length
    segments = [offset // distance for offset in offsets]
    assert segments[:passes] == [turn % number for turn in range(min(passes, len(offsets)))]
    assert set(segments) == set(range(number))
    assert all(offset % distance + 4096 <= length for offset in offsets)
    inside = {offset % distance for offset in offsets}
    assert len(inside) > 0.6 * length / 4096


def test_segments_of_an_unaligned_cell_stay_on_the_drive(footprint: Footprint) -> None:
    cell = replace(WRITES, segments=4, alignment_offset_bytes=512)
    offsets = [offset for _, offset, _ in footprint(cell)]
    assert {offset % 4096 for offset in offsets} == {512}
    assert max(offsets) + 4096 <= CAPACITY
    assert [(offset - 512) // (16 * MIB) for offset in offsets] == [turn % 4 for turn in range(len(offsets))]


def test_two_workloads_have_separate_stretches(footprint: Footprint) -> None:
    beside = {"pattern": "sequential", "read_share": 100, "block_size_bytes": 65536, "threads": 1, "queue_depth": 1}
    cell = replace(WRITES, pattern="sequential", volume_bytes=None, runtime_s=0.5, range_bytes=8 * MIB, beside=beside)
    requests = footprint(cell)
    writes = [(offset, length) for operation, offset, length in requests if operation == "write"]
    reads = [(offset, length) for operation, offset, length in requests if operation == "read"]
    assert {length for _, length in writes} == {4096}
    assert {length for _, length in reads} == {65536}
    assert [offset for offset, _ in writes] == [index % 1024 * 4096 for index in range(len(writes))]
    assert [offset for offset, _ in reads] == [4 * MIB + index % 64 * 65536 for index in range(len(reads))]


def test_a_random_workload_beside_a_sequential_one_has_the_whole_range(footprint: Footprint) -> None:
    beside = {"pattern": "random", "read_share": 100, "block_size_bytes": 8192, "threads": 1, "queue_depth": 4}
    cell = replace(WRITES, pattern="sequential", volume_bytes=None, runtime_s=0.5, range_bytes=2 * MIB, beside=beside)
    requests = footprint(cell)
    assert {offset for operation, offset, _ in requests if operation == "write"} == set(range(0, 2 * MIB, 4096))
    reads = {offset for operation, offset, _ in requests if operation == "read"}
    assert reads <= set(range(0, 2 * MIB, 8192))
    assert len(reads) > 200
