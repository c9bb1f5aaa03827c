"""Replay jobs and iologs for fio."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_traces import Row
from prepared_replays import MIB, prepare_rows

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay.fio_iolog import MOST_LANES, FioIolog, deal_out
from drivelab.replay.prepare import Prepared, prepare
from drivelab.trace import trace_catalogue

DEVICE = "/dev/loop77"
ORIGINAL, ASAP = ReplayChoice(), ReplayChoice(TimingChoice("asap"))
FLUSHED = ("preflush", "fua")


def prepared_of(
    folder: Path, *rows: tuple[int, int, str, int, int, tuple[str, ...]], choice: ReplayChoice = ORIGINAL
) -> Prepared:
    """Prepare rows of queue (µs), busy (µs), operation, offset, length and flags."""
    requests = [
        Row(q * 1000, None, (q + b) * 1000, op, offset, length, flags=flags) for q, b, op, offset, length, flags in rows
    ]
    return prepare_rows(folder, requests, choice, MIB, 4096)


def test_lanes_follow_the_overlap_of_the_trace(tmp_path: Path) -> None:
    prepared = prepared_of(
        tmp_path,
        (0, 100, "write", 0, 4096, ()), (50, 20, "read", 8192, 4096, ()), (200, 10, "write", 4096, 4096, FLUSHED),
        (300, 10, "flush", 0, 0, ()), (400, 10, "discard", 0, 4096, ()), (400, 10, "write-zeroes", 0, 4096, ()),
    )  # fmt: skip
    engine = FioIolog()
    text = engine.job(prepared, DEVICE, tmp_path)
    assert text.count("[lane-") == 2
    assert "replay_no_stall" not in text
    opening = f"fio version 3 iolog\n1 {DEVICE} add\n1 {DEVICE} open\n"
    assert (tmp_path / "lane-0.iolog").read_text() == opening + (
        f"1 {DEVICE} write 0 4096\n201 {DEVICE} sync 0 0\n201 {DEVICE} write 4096 4096\n"
        f"301 {DEVICE} sync 0 0\n401 {DEVICE} close\n"
    )
    assert (tmp_path / "lane-1.iolog").read_text() == opening + f"51 {DEVICE} read 8192 4096\n401 {DEVICE} close\n"
    assert engine.dropped(prepared) == {"discards": 1, "write-zeroes": 1, "FUA flags": 1}


@pytest.mark.parametrize("choice", [ORIGINAL, ASAP, ReplayChoice(TimingChoice("idle-capped", idle_cap_s=0.001))])
def test_the_iologs_contain_all_planned_requests(tmp_path: Path, choice: ReplayChoice) -> None:
    prepared = prepare(trace_catalogue.path_of("sqlite-inserts"), tmp_path / "made", choice, 64 * MIB, 4096)
    FioIolog().job(prepared, DEVICE, tmp_path)
    lines = [line.split() for path in tmp_path.glob("*.iolog") for line in path.read_text().splitlines()]
    counts = pd.Series([line[2] for line in lines if len(line) == 5]).value_counts()
    planned = prepared.planned_counts()
    assert counts.to_dict() == {
        {"flush": "sync"}.get(name, name): planned[name]["requests"] for name in ("read", "write", "flush")
    }
    assert prepared.requests == counts.sum()


def test_a_write_follows_its_flush_in_the_same_lane(tmp_path: Path) -> None:
    """Check this also for lanes in rotation: only a shared lane keeps the order."""
    rows = [(index, 500, "write", 4096 * index, 4096, FLUSHED if index % 2 else ()) for index in range(10)]
    for choice in (ORIGINAL, ASAP):
        FioIolog().job(prepared_of(tmp_path, *rows, choice=choice), DEVICE, tmp_path)
        pairs = 0
        for path in tmp_path.glob("*.iolog"):
            lines = [line.split() for line in path.read_text().splitlines()[3:-1]]
            for first, second in pairwise(lines):
                if first[2] == "sync":
                    assert (second[0], second[2]) == (first[0], "write")
                    assert int(second[3]) // 4096 % 2
                    pairs += 1
            path.unlink()
        assert pairs == 5


def test_a_lane_with_only_flushes_joins_another(tmp_path: Path) -> None:
    """fio fails on an iolog without a read or write."""
    prepared = prepared_of(tmp_path, (0, 100, "write", 0, 4096, ()), (50, 20, "flush", 0, 0, ()))
    text = FioIolog().job(prepared, DEVICE, tmp_path)
    assert text.count("[lane-") == 1
    assert f"51 {DEVICE} sync 0 0\n" in (tmp_path / "lane-0.iolog").read_text()


def test_as_fast_as_possible_spreads_over_all_lanes(tmp_path: Path) -> None:
    rows = [(index, 3, "read", 4096 * index, 4096, ()) for index in range(9)]
    text = FioIolog().job(prepared_of(tmp_path, *rows, choice=ASAP), DEVICE, tmp_path)
    assert "replay_no_stall=1" in text
    assert [path.read_text().count(" read ") for path in tmp_path.glob("*.iolog")] == [3, 3, 3]
    deep = ReplayChoice(TimingChoice("asap", depth=9))
    assert FioIolog().job(prepared_of(tmp_path, *rows, choice=deep), DEVICE, tmp_path).count("[lane-") == 9


def test_scaled_deadlines_change_the_times(tmp_path: Path) -> None:
    half = ReplayChoice(TimingChoice("scaled", factor=0.5))
    rows = [(100, 3, "read", 0, 4096, ()), (300, 3, "read", 4096, 4096, ())]
    assert "replay_no_stall" not in FioIolog().job(prepared_of(tmp_path, *rows, choice=half), DEVICE, tmp_path)
    assert f"101 {DEVICE} read 4096 4096\n" in (tmp_path / "lane-0.iolog").read_text()


def test_dependencies_are_refused(tmp_path: Path) -> None:
    rows = [Row(0, None, 5, pid=7), Row(9, None, 12, pid=7)]
    prepared = prepare_rows(tmp_path, rows, ReplayChoice(dependencies="process"))
    with pytest.raises(
        UserError, match="cannot keep requests in order of process: an iolog cannot express dependencies"
    ):
        FioIolog().job(prepared, DEVICE, tmp_path)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=200))
def test_a_lane_is_idle_when_it_gets_a_request(pairs: list[tuple[int, int]]) -> None:
    """Check this up to the limit, and that no lane is superfluous."""
    time_us = np.cumsum([gap for gap, _ in pairs]).astype(np.int64)
    busy_us = np.array([span for _, span in pairs], np.int64)
    lanes = deal_out(time_us, busy_us)
    ends = time_us + np.maximum(busy_us, 1)
    deepest = max(int(((time_us[: i + 1] <= now) & (ends[: i + 1] > now)).sum()) for i, now in enumerate(time_us))
    assert lanes.max() + 1 == min(deepest, MOST_LANES)
    if deepest <= MOST_LANES:
        for lane in range(lanes.max() + 1):
            chosen = lanes == lane
            assert (time_us[chosen][1:] >= ends[chosen][:-1]).all()


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed")
@pytest.mark.parametrize("choice", [ORIGINAL, ASAP])
def test_fio_runs_the_job(tmp_path: Path, choice: ReplayChoice) -> None:
    """Run fio on a file; it counts the requests like those of a device."""
    target = tmp_path / "drive"
    target.write_bytes(bytes(1 << 20))
    prepared = prepared_of(
        tmp_path,
        (0, 100, "write", 0, 4096, ()), (50, 20, "read", 8192, 8192, ()), (200, 10, "write", 4096, 4096, FLUSHED),
        (300, 10, "flush", 0, 0, ()),
        choice=choice,
    )  # fmt: skip
    text = FioIolog().job(prepared, str(target), tmp_path).replace("direct=1", "direct=0")
    (tmp_path / "job.fio").write_text(text)
    command = ["fio", "--output-format=json", "job.fio"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    job = json.loads(done.stdout)["jobs"][0]
    assert (job["read"]["total_ios"], job["write"]["total_ios"], job["sync"]["total_ios"]) == (1, 2, 2)
    assert (job["read"]["io_bytes"], job["write"]["io_bytes"]) == (8192, 8192)
