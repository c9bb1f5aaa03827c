"""Schedules of open-loop arrivals: their rates, their shapes, and their requests."""

from __future__ import annotations

from pathlib import Path

import made_traces
import numpy as np
import pytest

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.replay.arrivals import constant_gaps, due_times_ns, gaps_of, load_schedule, poisson_gaps, trace_gaps
from drivelab.replay.engine_records import OPERATION_CODES, Records, open_schedule

CAPACITY, BLOCK = 64 << 20, 4096
CELL = Cell("random", 70, 4096, threads=1, queue_depth=4096)


def scheduled(tmp_path: Path, cell: Cell = CELL, iops: float = 20_000, count: int = 300_000, seed: int = 1) -> Records:
    path = tmp_path / "load.schedule"
    last_s = load_schedule(cell, gaps_of("poisson", seed, None), iops, count, path, seed, CAPACITY, BLOCK)
    records = open_schedule(path).records
    assert last_s == pytest.approx(float(records["deadline_ns"][-1]) / 1e9)
    return records


def test_poisson_arrivals_are_independent_and_exponential(tmp_path: Path) -> None:
    records = scheduled(tmp_path)
    gaps_s = np.diff(records["deadline_ns"].astype(np.int64)) / 1e9
    assert gaps_s.mean() == pytest.approx(1 / 20_000, rel=0.01)
    assert gaps_s.std() == pytest.approx(1 / 20_000, rel=0.01)
    assert abs(np.corrcoef(gaps_s[:-1], gaps_s[1:])[0, 1]) < 0.01
    counts = np.bincount((records["deadline_ns"] // 10**7).astype(np.int64))[:-1]  # per 10 ms
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.1)


def test_constant_arrivals_are_equally_far_apart() -> None:
    (times,) = due_times_ns(constant_gaps(), 1000, 5)
    assert times.tolist() == [1_000_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]


def test_batches_join_without_a_gap() -> None:
    times = np.concatenate(list(due_times_ns(constant_gaps(), 1e6, 300_000)))
    assert (np.diff(times.astype(np.int64)) == 1000).all()


def test_arrivals_of_a_trace_keep_their_bursts(tmp_path: Path) -> None:
    """Three requests at once, then a pause of 9 ms: at any rate, two of three gaps are 1 % of the third."""
    times_ms = [start + step for start in (0, 10, 20, 30) for step in (0, 0.1, 0.2)]
    path = made_traces.write(tmp_path / "bursts.parquet", [made_traces.Row(round(1e6 * time)) for time in times_ms])
    gaps = trace_gaps(path, seed=1)(11 * 1000)
    assert gaps.mean() == pytest.approx(1)
    assert np.median(gaps) < 0.04 < 2.5 < gaps.max()
    (times,) = due_times_ns(trace_gaps(path, seed=1), 500, 12)
    assert set(np.round(np.diff(times.astype(np.int64)) / np.diff(times.astype(np.int64)).min()).tolist()) >= {1, 98}


def test_a_trace_without_a_rate_is_refused(tmp_path: Path) -> None:
    path = made_traces.write(tmp_path / "at-once.parquet", [made_traces.Row(5)] * 3)
    with pytest.raises(UserError, match="arrive at once"):
        trace_gaps(path, seed=1)


def test_requests_are_those_of_the_workload(tmp_path: Path) -> None:
    records = scheduled(tmp_path)
    assert (records["operation"] == OPERATION_CODES["read"]).mean() == pytest.approx(0.7, abs=0.01)
    assert set(records["length_bytes"].tolist()) == {4096}
    assert len(np.unique(records["offset_bytes"])) > 0.99 * CAPACITY / BLOCK
    assert not records["depth"].any()
    half = scheduled(tmp_path, Cell("random", 100, 8192, 1, 32, range_share=0.5), count=10_000)
    assert int((half["offset_bytes"] + half["length_bytes"]).max()) <= CAPACITY // 2
    assert (half["operation"] == OPERATION_CODES["read"]).all()
    one_by_one = scheduled(tmp_path, Cell("sequential", 0, 65536, 1, 32), count=100)
    assert (np.diff(one_by_one["offset_bytes"].astype(np.int64)) == 65536).all()


def test_sequential_reads_and_writes_have_separate_stretches(tmp_path: Path) -> None:
    records = scheduled(tmp_path, Cell("sequential", 60, 65536, 2, 32), count=2000)
    for operation, start in (("read", 0), ("write", CAPACITY // 2)):
        offsets = records["offset_bytes"][records["operation"] == OPERATION_CODES[operation]]
        blocks = CAPACITY // 2 // 65536
        assert len(offsets) > blocks  # it wraps
        assert offsets.tolist() == [start + index % blocks * 65536 for index in range(len(offsets))]


def test_random_requests_cover_the_active_range_uniformly(tmp_path: Path) -> None:
    records = scheduled(tmp_path, Cell("random", 50, 4096, 1, 32, range_start=0.25, range_share=0.5), count=40_000)
    offsets = records["offset_bytes"][records["operation"] == OPERATION_CODES["read"]]
    assert not (offsets % 4096).any()
    assert (offsets.min() >> 20, offsets.max() >> 20) == (16, 47)
    per_mib = np.bincount((offsets >> np.uint64(20)).astype(int) - 16, minlength=32)
    assert ((per_mib - len(offsets) / 32) ** 2 / (len(offsets) / 32)).sum() < 75  # chi-square, 31 degrees: p < 2e-5


def test_the_same_seed_gives_the_same_schedule(tmp_path: Path) -> None:
    first = scheduled(tmp_path, count=1000).copy()
    assert (scheduled(tmp_path, count=1000) == first).all()
    assert (scheduled(tmp_path, count=1000, seed=2) != first).any()


def test_a_drive_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not hold a block of 4KiB"):
        load_schedule(CELL, poisson_gaps(1), 1000, 10, tmp_path / "s", 1, 2048, 512)
