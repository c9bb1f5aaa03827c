"""Combinations of lists, lists with shares, labels, and the places of cells on a drive."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_traces import Row, made_up, write

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.expressible import percents, workloads_of
from drivelab.plan.loop_cells import SWEPT, combinations
from drivelab.plan.ranges import active_range, parts_of, range_of
from drivelab.plan.value_types import MisfitError, block_sizes
from drivelab.run.history import tracked
from drivelab.run.schedules import cells_of_trace, most_frequent


@settings(deadline=None)
@given(st.lists(st.sampled_from(SWEPT), unique=True, min_size=1), st.data())
def test_combinations_are_the_product_in_the_order_of_the_keys(keys: list[str], data: st.DataObject) -> None:
    grid = {key: data.draw(st.lists(st.integers(), min_size=1, max_size=3, unique=True)) for key in keys}
    fixed = {"title": "t"}
    combined = list(combinations({**fixed, **grid}))
    assert combined == [
        {**fixed, **dict(zip(keys, combination, strict=True))} for combination in itertools.product(*grid.values())
    ]


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 64), st.integers(1, 50), min_size=2, max_size=8))
def test_distributions_keep_their_shares(weights: dict[int, int]) -> None:
    total = sum(weights.values())
    shares = {format_size(512 * size): 100 * weight / total for size, weight in weights.items()}
    resolved_sizes = block_sizes({size: f"{share:.9f}%" for size, share in shares.items()})
    sizes = [entry["block_size_bytes"] for entry in resolved_sizes["block_sizes"]]
    assert sizes == sorted(512 * size for size in weights)
    assert resolved_sizes["block_size_bytes"] == sizes[0]
    assert sum(entry["share"] for entry in resolved_sizes["block_sizes"]) == pytest.approx(1)
    for entry in resolved_sizes["block_sizes"]:
        assert entry["share"] == pytest.approx(weights[entry["block_size_bytes"] // 512] / total)
    with pytest.raises(MisfitError, match="add up to"):
        block_sizes({size: f"{share / 2:.9f}%" for size, share in shares.items()})


def test_labels_and_the_largest_block() -> None:
    cell = Cell("random", 65, 4096, threads=4, queue_depth=32)
    wide = replace(cell, block_size_max_bytes=1 << 20)
    sequential = Cell("sequential", 100, 131072, threads=1, queue_depth=1)
    labels = ["RND 4KiB 65/35 T4Q32", "RND 4KiB-1024KiB 65/35 T4Q32", "SEQ 128KiB 100/0 T1Q1"]
    assert [shown.label for shown in (cell, wide, sequential)] == labels
    assert [shown.largest_block_bytes for shown in (cell, wide)] == [4096, 1 << 20]


MIB = 1 << 20
CELL = Cell("random", 0, 4096, threads=1, queue_depth=1, runtime_s=1.0)
ZONES = ({"range_share": 0.5, "share": 0.9}, {"range_share": 0.5, "share": 0.1})
READS = {"pattern": "random", "read_share": 100, "block_size_bytes": 4096, "threads": 1, "queue_depth": 1}


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


STREAMS = {"kind": "individual", "most": 9, "threads": [2], "queue_depth": [16], "runtime_s": 60.0, "range_share": 0.5}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Random access everywhere: 6 reads of 4 KiB, 3 writes of 512 B and 2 of 3 KiB, 1 write of 64 KiB, a flush."""
    kinds = [("read", 4096)] * 6 + [("write", 512)] * 3 + [("write", 3072)] * 2 + [("write", 65536), ("flush", 0)]
    rows = [
        Row(number * 1000, complete_ns=number * 1000 + 10, operation=operation, length_bytes=length,
            offset_bytes=(len(kinds) - number) * 10**8 // 4096 * 4096)
        for number, (operation, length) in enumerate(kinds)
    ]  # fmt: skip
    return write(tmp_path / "trace.parquet", rows)


def brief(streams: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(stream["read_share"], stream["block_size_bytes"], stream["pattern"]) for stream in streams]


def test_the_most_frequent_come_first(trace: Path) -> None:
    assert brief(most_frequent(trace, 9, 512)) == [
        (100, 4096, "random"), (0, 512, "random"), (0, 3072, "random"), (0, 65536, "random")
    ]  # fmt: skip
    assert brief(most_frequent(trace, 2, 512)) == [(100, 4096, "random"), (0, 512, "random")]


def test_streams_equal_in_logical_blocks_are_merged(trace: Path) -> None:
    """512 B and 3 KiB are both 4 KiB on a drive of 4 KiB blocks."""
    assert brief(most_frequent(trace, 3, 4096)) == [(100, 4096, "random"), (0, 4096, "random"), (0, 65536, "random")]


def test_individual_streams_are_ordinary_cells(trace: Path) -> None:
    cells = [Cell(**cell) for cell in cells_of_trace({**STREAMS, "most": 3}, trace, 512)]
    assert [cell.workload for cell in cells] == ["RND 4KiB 100/0", "RND 512B 0/100", "RND 3KiB 0/100"]
    assert all(cell.runtime_s == 60.0 for cell in cells)


def test_a_sweep_goes_through_all_combinations(trace: Path) -> None:
    cells = cells_of_trace({**STREAMS, "most": 1, "threads": [4, 1], "queue_depth": [8, 2]}, trace, 512)
    assert [(cell["threads"], cell["queue_depth"]) for cell in cells] == [(4, 8), (4, 2), (1, 8), (1, 2)]


def test_a_trace_without_reads_and_writes_has_no_streams(tmp_path: Path) -> None:
    path = write(tmp_path / "t.parquet", [Row(1, operation="flush", length_bytes=0)])
    with pytest.raises(UserError, match=r"t\.parquet: no request reads or writes"):
        most_frequent(path, 9, 4096)


def test_streams_are_tracked_by_demand(trace: Path) -> None:
    cells = cells_of_trace({**STREAMS, "most": 1, "threads": [4, 1]}, trace, 512)
    rounds = [[{"iops": 10.0 * round_ + index} for round_ in (1, 2)] for index in range(2)]
    every = tracked(cells, rounds, {"track": [{"streams": "all", "metric": "iops"}]})
    assert list(every.values()) == [[10.0, 20.0], [11.0, 21.0]]
    values = tracked(cells, rounds, {"track": [{"streams": "all", "threads": 1, "queue_depth": 16, "metric": "iops"}]})
    assert list(values.values()) == [[11.0, 21.0]]


@given(rows=made_up(), most=st.integers(1, 9), block=st.sampled_from([512, 4096]))
def test_streams_of_any_trace(tmp_path_factory: pytest.TempPathFactory, rows: list[Row], most: int, block: int) -> None:
    """Compare with a simple count, except which streams are sequential."""
    path = write(tmp_path_factory.mktemp("streams") / "t.parquet", rows)
    moved = Counter(
        (row.operation, -(-row.length_bytes // block) * block) for row in rows if row.operation in ("read", "write")
    )
    if not moved:
        with pytest.raises(UserError):
            most_frequent(path, most, block)
        return
    streams = most_frequent(path, most, block)
    assert len(streams) <= most
    kinds = [("read" if stream["read_share"] else "write", stream["block_size_bytes"]) for stream in streams]
    assert set(kinds) <= moved.keys()
    if most == 9:  # no made-up trace of these lengths has more streams
        assert set(kinds) == moved.keys()
