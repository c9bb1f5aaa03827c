"""Composites of streams: schedules, job text, and completions in order."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.replay import composite
from drivelab.replay.composite import completed_rows, composite_schedule
from drivelab.replay.engine_records import (
    OPERATION_CODES,
    RESULT_RECORD,
    RESULTS_HEADER_BYTES,
    Records,
    make_results,
    open_schedule,
)
from drivelab.replay.streams import composite_text, streams_of

CAPACITY = 64 << 20
READ, WRITE = OPERATION_CODES["read"], OPERATION_CODES["write"]


def stream(operation: str, block_size_bytes: int, pattern: str, share: float) -> dict[str, Any]:
    return {"operation": operation, "block_size_bytes": block_size_bytes, "pattern": pattern, "share": share}


STREAMS = (
    stream("read", 4096, "random", 0.45),
    stream("write", 8192, "random", 0.3),
    stream("write", 65536, "sequential", 0.2),
    stream("read", 12288, "sequential", 0.05),
)
CELL = Cell("composite", 50, 19661, threads=2, queue_depth=8, runtime_s=1.0, streams=STREAMS)


def drawn(folder: Path, cell: Cell = CELL, seed: int = 1, count: int = 40_000, capacity: int = CAPACITY) -> Records:
    composite_schedule(cell, capacity, 512, folder / "s", seed, count)
    return open_schedule(folder / "s").records


def test_shares_and_sizes_match_the_streams(tmp_path: Path) -> None:
    records = drawn(tmp_path)
    kinds = list(zip(records["operation"].tolist(), records["length_bytes"].tolist(), strict=True))
    for source in STREAMS:
        kind = (OPERATION_CODES[source["operation"]], source["block_size_bytes"])
        spread = (source["share"] * (1 - source["share"]) / len(kinds)) ** 0.5
        assert kinds.count(kind) / len(kinds) == pytest.approx(source["share"], abs=5 * spread)
    assert len(set(kinds)) == 4


def test_streams_are_drawn_independently(tmp_path: Path) -> None:
    sizes = drawn(tmp_path)["length_bytes"]
    after_a_write = sizes[1:][sizes[:-1] == 65536]
    assert (after_a_write == 65536).mean() == pytest.approx(0.2, abs=0.025)


def test_all_requests_are_due_at_once_at_the_depth_of_the_cell(tmp_path: Path) -> None:
    records = drawn(tmp_path)
    assert set(records["depth"].tolist()) == {16}
    for name in ("deadline_ns", "think_ns", "after", "flags"):
        assert not records[name].any()
    header = open_schedule(tmp_path / "s").header
    assert (header["count"], header["target_bytes"], header["block_bytes"]) == (40_000, CAPACITY, 512)
    assert header["longest_bytes"] == 65536


def test_random_streams_cover_the_active_range_uniformly(tmp_path: Path) -> None:
    cell = replace(CELL, range_start=0.25, range_share=0.5)
    records = drawn(tmp_path, cell)
    offsets = records["offset_bytes"][(records["operation"] == READ) & (records["length_bytes"] == 4096)]
    assert not (offsets % 4096).any()
    assert (offsets.min() >> 20, offsets.max() >> 20) == (16, 47)
    per_mib = np.bincount((offsets >> np.uint64(20)).astype(int) - 16, minlength=32)
    assert ((per_mib - len(offsets) / 32) ** 2 / (len(offsets) / 32)).sum() < 75  # chi-square, 31 degrees: p < 2e-5


@pytest.mark.parametrize("batch", [1 << 17, 1000])
def test_sequential_streams_have_separate_stretches(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(composite, "_BATCH", batch)
    records = drawn(tmp_path)
    for operation, block, start in ((WRITE, 65536, 0), (READ, 12288, 32 << 20)):
        stream_records = records[(records["operation"] == operation) & (records["length_bytes"] == block)]
        blocks = (32 << 20) // block
        assert len(stream_records) > (blocks if block == 65536 else 0)  # it wraps
        assert stream_records["offset_bytes"].tolist() == [
            start + index % blocks * block for index in range(len(stream_records))
        ]


def test_the_seed_determines_the_schedule(tmp_path: Path) -> None:
    contents = []
    for seed in (1, 1, 2):
        drawn(tmp_path, seed=seed)
        contents.append((tmp_path / "s").read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_a_single_stream(tmp_path: Path) -> None:
    records = drawn(tmp_path, replace(CELL, streams=(stream("write", 4096, "sequential", 1.0),)), count=100)
    assert records["offset_bytes"].tolist() == [4096 * index for index in range(100)]
    assert set(records["operation"].tolist()) == {WRITE}


@settings(deadline=None, max_examples=60)
@given(
    streams=st.lists(
        st.builds(
            stream,
            st.sampled_from(["read", "write"]),
            st.integers(1, 40).map(lambda blocks: 512 * blocks),
            st.sampled_from(["random", "sequential"]),
            st.floats(0.01, 1.0),
        ),
        min_size=1,
        max_size=9,
    ),
    place=st.tuples(st.floats(0, 0.5), st.floats(0.3, 0.5)),
    seed=st.integers(0, 2**32),
)
def test_requests_are_whole_blocks_within_the_range(
    streams: list[dict[str, Any]], place: tuple[float, float], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cell = replace(CELL, streams=tuple(streams), range_start=place[0], range_share=place[1])
    capacity = 8 << 20
    records = drawn(tmp_path_factory.mktemp("composite"), cell, seed, 2000, capacity)
    end = records["offset_bytes"] + records["length_bytes"]
    assert end.max() <= (place[0] + place[1]) * capacity
    assert records["offset_bytes"].min() >= place[0] * capacity - 40 * 512
    assert not ((records["offset_bytes"] | records["length_bytes"]) % 512).any()
    kinds = {(OPERATION_CODES[source["operation"]], source["block_size_bytes"]) for source in streams}
    assert set(zip(records["operation"].tolist(), records["length_bytes"].tolist(), strict=True)) <= kinds


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queue_depth": 4096}, "8192 I/Os in flight exceed the engine's limit of 4096"),
        ({"range_share": 0.001}, "does not hold a block of 64KiB"),
        ({"streams": (stream("read", 1000, "random", 1.0),)}, "the block size 1000B of a stream does not fit"),
        ({"streams": (stream("read", 128 << 20, "random", 1.0),), "range_share": 1.0}, "does not hold a block"),
    ],
)
def test_cells_that_do_not_fit_are_refused(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=reason):
        drawn(tmp_path, replace(CELL, **changes))
    assert not (tmp_path / "s").exists()


def test_a_block_above_the_engines_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="at most 64MiB"):
        drawn(tmp_path, replace(CELL, streams=(stream("read", 65 << 20, "random", 1.0),)), capacity=1 << 30)


def test_a_cell_without_streams_is_refused() -> None:
    with pytest.raises(ValueError, match="no streams"):
        streams_of(Cell("random", 0, 4096, 1, 1), CAPACITY, 512)


def test_the_job_text_has_all_parameters() -> None:
    text = composite_text(replace(CELL, volume_bytes=1 << 30), "S1", "drivelab", CAPACITY, 512, 7)
    lines = text.splitlines()
    assert lines[0] == "[cell]"
    assert "stream1=randread bs=4096 share=0.45 offset=0 size=67108864" in lines
    assert "stream3=write bs=65536 share=0.2 offset=0 size=33554432" in lines
    assert "stream4=read bs=12288 share=0.05 offset=33554432 size=33546240" in lines
    assert {"iodepth=8", "numjobs=2", "runtime=1000ms", "io_size=1073741824", "randseed=7"} <= set(lines)


def write_results(path: Path, rows: list[tuple[int, int, int, int, int, int]]) -> None:
    make_results(path, len(rows), 0)
    with path.open("r+b") as file:
        file.seek(RESULTS_HEADER_BYTES)
        file.write(np.array(rows, RESULT_RECORD).tobytes())


@settings(deadline=None, max_examples=100)
@given(
    steps=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 200), st.sampled_from([2, 2, 2, 1])), max_size=60),
    batch=st.integers(1, 70),
    count=st.integers(1, 20),
    unissued=st.integers(0, 3),
)
def test_completions_are_in_order_for_any_batch(
    steps: list[tuple[int, int, int]],
    batch: int,
    count: int,
    unissued: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("completions")
    records = drawn(folder, count=count)
    rows, now_ns, expected = [], 0, []
    for index, (gap_ns, latency_ns, state) in enumerate(steps):
        now_ns += gap_ns
        failed = latency_ns % 7 == 3
        record = records[index % count]
        rows.append((now_ns, now_ns + latency_ns, -5 if failed else int(record["length_bytes"]), state, 0, 1))
        if state == 2 and not failed:
            times_us = ((now_ns + latency_ns) / 1000, now_ns / 1000)
            expected.append((*times_us, bool(record["operation"] == READ), int(record["length_bytes"])))
    rows += [(0, 0, 0, 0, 0, 0)] * (unissued or not rows)
    write_results(folder / "results.bin", rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(composite, "_BATCH", batch)
        rows = list(completed_rows(folder / "s", folder / "results.bin"))
    assert all(len(part) for part in rows)
    completed = [tuple(row) for part in rows for row in part.tolist()]
    assert sorted(completed) == sorted(expected)
    assert [done_us for done_us, *_ in completed] == sorted(done_us for done_us, *_ in completed)
