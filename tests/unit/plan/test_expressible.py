"""Cells that no fio job can express are refused with a reason and a remedy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import percents, refuse_inexpressible, workloads_of
from drivelab.plan.ranges import active_range, parts_of, range_of

MIB = 1 << 20
CELL = Cell("random", 0, 4096, threads=1, queue_depth=1, runtime_s=1.0)
ZONES = ({"range_share": 0.5, "share": 0.9}, {"range_share": 0.5, "share": 0.1})
READS = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1}


def sizes(*entries: tuple[int, float]) -> tuple[dict[str, Any], ...]:
    return tuple({"block_size_bytes": size, "share": share} for size, share in entries)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"block_sizes": sizes((4096, 0.965), (8192, 0.035))}, "whole percentages"),
        ({"block_sizes": sizes((4096, 0.5), (8192, 0.4))}, "add up to 90"),
        ({"block_sizes": sizes((8192, 0.5), (4096, 0.5))}, "ascending order"),
        ({"block_sizes": sizes((4096, 0.5), (6144, 0.5))}, "multiples of the smallest block size, 4KiB"),
        ({"block_sizes": sizes(*((4096 * number, 0.01) for number in range(1, 101)))}, "at most 64 block sizes"),
        ({"block_sizes": sizes((4096, 1.0)), "block_size_max_bytes": 8192}, "both a range and a distribution"),
        ({"zones": ({"range_share": 0.995, "share": 1}, {"range_share": 0.005, "share": 0})}, "ranges of the zones"),
        ({"zones": ({"range_share": 0.5, "share": 0.5}, {"range_share": 0.5, "share": 0.4})}, "shares of the zones"),
        ({"zones": ZONES, "zipf": 1.2}, "does not combine access by zones and access by Zipf's law"),
        ({"zones": ZONES, "segments": 4}, "does not combine access by zones and access in segments"),
        ({"zipf": 1.2, "segments": 4}, "does not combine access by Zipf's law and access in segments"),
        ({"zones": ZONES, "pattern": "sequential"}, "access by zones needs random I/O"),
        ({"zipf": 1.2, "pattern": "sequential"}, "access by Zipf's law needs random I/O"),
        ({"segments": 4, "pattern": "sequential"}, "access in segments needs random I/O"),
        ({"zipf": 1.0}, "Zipf's law with exponent 1;"),
        ({"zipf": 1.2, "alignment_bytes": 512}, "remove the alignment"),
        ({"segments": 4, "block_size_max_bytes": 8192}, "beyond the end of a segment"),
        ({"segments": 0}, "hold nothing"),
        ({"segments": 4, "range_start": 0.5}, "spread over the whole drive"),
        ({"pattern": "sequential", "alignment_bytes": 8192}, "are adjacent"),
        ({"alignment_bytes": 0}, "positive number of bytes"),
        ({"alignment_offset_bytes": -512}, "before the start"),
        ({"rate_iops": 0.0}, "is not positive"),
        ({"rate_iops": 10.0, "block_size_max_bytes": 8192}, "no fixed rate of I/Os"),
        ({"entropy": 0.455}, "entropy of 45.5 %"),
        ({"entropy": 1.2}, "entropy of 120 %"),
        ({"read_share": 70, "synchronous": True}, "only writes are synchronous"),
        ({"queue_depth": 8, "synchronous": True}, "choose queue depth 1"),
        ({"threads": 2, "synchronous": True}, "choose threads 1"),
        ({"rate_iops": 5.0, "synchronous": True}, "without a rate"),
        ({"synchronous": True, "registered": True}, "does not use io_uring"),
        ({"queue_depth": 8, "batch": 9}, "choose 2 up to the queue depth, 8"),
        ({"operation": "trim", "polled": True}, "polls for reads and writes only"),
        ({"synchronous": True, "nvme": True}, "does not use io_uring"),
        ({"operation": "trim", "nvme": True}, "reads and writes only as NVMe commands"),
        ({"entropy": 0.5, "reuse_buffers": True}, "an entropy needs new data"),
        ({"beside": READS, "volume_bytes": MIB}, "a volume cannot end"),
        ({"operation": "trim", "beside": READS}, "own workload trims"),
        ({"operation": "trim", "read_share": 50}, "do not read"),
        ({"beside": {**READS, "pattern": "sequential"}, "segments": 2}, "make all workloads random"),
        ({"beside": {**READS, "pattern": "sequential"}, "alignment_bytes": 8192}, "are adjacent"),
    ],
)  # fmt: skip
def test_refused_with_a_reason_and_a_remedy(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(UserError, match=reason) as caught:
        refuse_inexpressible(replace(CELL, **changes))
    assert str(caught.value).startswith("cell ")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"block_sizes": sizes((512, 0.04), (4096, 0.96)), "block_size_bytes": 512, "alignment_bytes": 4096},
        {"zones": ZONES, "alignment_bytes": 512},
        {"zones": ZONES, "block_size_max_bytes": 65536},
        {"zipf": 0.9, "block_size_max_bytes": 65536},
        {"segments": 16, "range_share": 0.1, "alignment_offset_bytes": 512},
        {"rate_iops": 0.5, "entropy": 0.46},
        {"beside": READS, "zones": ZONES},
        {"queue_depth": 8, "batch": 8, "registered": True, "polled": True, "reuse_buffers": True},
    ],
)
def test_accepted(changes: dict[str, Any]) -> None:
    refuse_inexpressible(replace(CELL, **changes))


def test_percents_of_inexact_shares() -> None:
    assert percents([{"share": 0.07}, {"share": 0.29}, {"share": 1 - 0.36}], "share") == [7, 29, 64]


def test_a_sequential_workload_ignores_the_random_distribution() -> None:
    cell = replace(CELL, pattern="sequential", read_share=100, title="x", beside={**READS, "read_share": 0}, zones=None)
    first, second = workloads_of(replace(cell, entropy=0.5, range_share=0.5))
    assert (first.pattern, second.pattern) == ("sequential", "random")
    assert first.beside is second.beside is None
    assert second.entropy == first.entropy == 0.5
    assert second.range_share == 0.5
    first, second = workloads_of(replace(CELL, zones=ZONES, beside={**READS, "pattern": "sequential"}))
    assert (first.zones, second.zones) == (ZONES, None)


def test_a_range_in_bytes() -> None:
    cell = replace(CELL, range_bytes=3 * MIB + 100)
    assert range_of(cell, 4 * MIB) == (0, 3 * MIB + 100)
    assert active_range(cell, 4 * MIB, 512) == (0, 3 * MIB)
    with pytest.raises(UserError, match=r"larger than the drive of 2MiB"):
        range_of(replace(cell, range_bytes=3 * MIB), 2 * MIB)
    with pytest.raises(UserError, match="larger than the drive"):
        active_range(replace(cell, range_start=0.5), 4 * MIB, 512)


def test_a_range_as_a_share_ends_with_the_drive() -> None:
    assert range_of(replace(CELL, range_start=0.75, range_share=0.5), 4 * MIB) == (3 * MIB, MIB)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"segments": 3, "range_share": 0.001}, "segments of the active range do not hold a block of 4KiB"),
        ({"segments": 900}, "segments of the active range do not hold"),
        ({"alignment_offset_bytes": 4 * MIB}, "active range does not hold"),
        ({"alignment_offset_bytes": 5 * MIB}, "active range does not hold"),
        ({"pattern": "sequential", "threads": 3, "range_bytes": 8192}, "does not hold a block of 4KiB for each thread"),
        ({"block_sizes": sizes((4096, 0.5), (8192, 0.5)), "range_bytes": 4096}, "does not hold a block of 8KiB"),
    ],
)
def test_a_range_without_room_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        parts_of(replace(CELL, **changes), 4 * MIB, 512)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(4, 4096),
    st.sampled_from(["random", "sequential"]),
    st.sampled_from([512, 4096, 6144, 65536]),
    st.sampled_from([None, 512, 4096, 8192]),
    st.sampled_from([0, 512, 5120]),
    st.integers(1, 5),
    st.tuples(st.floats(0, 0.9), st.floats(0.05, 1)) | st.integers(1, 40) | st.integers(1 << 12, 1 << 24),
)
def test_every_place_lies_within_the_drive(
    pages: int,
    pattern: str,
    block: int,
    alignment: int | None,
    shift: int,
    threads: int,
    place: tuple[float, float] | int,
) -> None:
    """For every accepted cell, offsets are aligned and lie within the range."""
    capacity = pages * 4096
    cell = replace(CELL, pattern=pattern, block_size_bytes=block, alignment_bytes=alignment, threads=threads)
    cell = replace(cell, alignment_offset_bytes=shift)
    if isinstance(place, tuple):
        cell = replace(cell, range_start=place[0], range_share=place[1])
    else:
        cell = replace(cell, **({"segments": place} if place <= 40 else {"range_bytes": place}))
    try:
        (part,) = parts_of(cell, capacity, 512)
        _, requested = range_of(cell, capacity)
    except UserError:
        return
    ends = part.start_bytes + part.length_bytes * (threads if pattern == "sequential" else 1)
    assert 0 <= part.start_bytes < ends <= capacity
    assert (part.start_bytes - shift) % (alignment or block) == 0
    if part.segments is None:
        assert ends - part.start_bytes <= max(requested, int(cell.range_share * capacity))
        return
    number, length, distance = part.segments.number, part.segments.length_bytes, part.segments.distance_bytes
    assert block <= length <= distance
    assert number * length <= requested
    assert part.start_bytes + (number - 1) * distance + length == ends
    assert part.start_bytes + number * distance >= capacity  # or fio would not start over
