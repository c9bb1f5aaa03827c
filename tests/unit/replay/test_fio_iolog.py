"""fio's job and iologs for a schedule."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.errors import UserError
from drivelab.replay.fio_iolog import MOST_LANES, FioIolog, deal_out
from drivelab.replay.schedule import Schedule, make_schedule, prepare_schedule
from drivelab.trace import catalogue

DEVICE = "/dev/loop77"


def schedule_of(*rows: tuple[int, int, str, int, int, bool]) -> Schedule:
    """Rows of queue (µs), busy (µs), operation, offset, length, preflush and FUA at once."""
    frame = pd.DataFrame(
        [
            (q * 1000, q * 1000 + 1, (q + b) * 1000, op, offset, length, flag, flag)
            for q, b, op, offset, length, flag in rows
        ],
        columns=[
            "queue_ns",
            "dispatch_ns",
            "complete_ns",
            "operation",
            "offset_bytes",
            "length_bytes",
            "preflush",
            "fua",
        ],
    )
    return make_schedule(frame.assign(dispatch_id=range(len(rows)), pieces=1), {}, 1 << 20, 4096)


def test_lanes_carry_what_was_in_flight_together(tmp_path: Path) -> None:
    schedule = schedule_of(
        (0, 100, "write", 0, 4096, False), (50, 20, "read", 8192, 4096, False), (200, 10, "write", 4096, 4096, True),
        (300, 10, "flush", 0, 0, False), (400, 10, "discard", 0, 4096, False),
    )  # fmt: skip
    engine = FioIolog()
    text = engine.job(schedule, DEVICE, tmp_path, "original")
    assert text.count("[lane-") == 2
    assert "replay_no_stall" not in text
    opening = f"fio version 3 iolog\n1 {DEVICE} add\n1 {DEVICE} open\n"
    assert (tmp_path / "lane-0.iolog").read_text() == opening + (
        f"1 {DEVICE} write 0 4096\n201 {DEVICE} sync 0 0\n201 {DEVICE} write 4096 4096\n"
        f"301 {DEVICE} sync 0 0\n401 {DEVICE} close\n"
    )
    assert (tmp_path / "lane-1.iolog").read_text() == opening + f"51 {DEVICE} read 8192 4096\n401 {DEVICE} close\n"
    assert engine.dropped(schedule) == {"discards": 1, "FUA flags": 1}


@pytest.mark.parametrize("timing", ["original", "asap"])
def test_nothing_planned_is_missing_from_the_iologs(tmp_path: Path, timing: str) -> None:
    schedule = prepare_schedule(catalogue.path_of("sqlite-inserts"), 64 << 20, 4096)
    FioIolog().job(schedule, DEVICE, tmp_path, timing)
    lines = [line.split() for path in tmp_path.glob("*.iolog") for line in path.read_text().splitlines()]
    counts = pd.Series([line[2] for line in lines if len(line) == 5]).value_counts()
    planned = schedule.planned()
    assert counts.to_dict() == {
        "read": planned["read_ios"],
        "write": planned["write_ios"],
        "sync": planned["flush_ios"],
    }


def test_a_lane_of_flushes_only_joins_another(tmp_path: Path) -> None:
    """fio ends with an error on an iolog without a read or a write."""
    schedule = schedule_of((0, 100, "write", 0, 4096, False), (50, 20, "flush", 0, 0, False))
    text = FioIolog().job(schedule, DEVICE, tmp_path, "original")
    assert text.count("[lane-") == 1
    assert f"51 {DEVICE} sync 0 0\n" in (tmp_path / "lane-0.iolog").read_text()


def test_as_fast_as_possible_spreads_over_all_lanes(tmp_path: Path) -> None:
    rows = [(index, 3, "read", 4096 * index, 4096, False) for index in range(9)]
    text = FioIolog().job(schedule_of(*rows), DEVICE, tmp_path, "asap")
    assert "replay_no_stall=1" in text
    sizes = [path.read_text().count(" read ") for path in tmp_path.glob("*.iolog")]
    assert sizes == [3, 3, 3]


def test_an_unknown_timing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="timing 'x3' is unknown"):
        FioIolog().job(schedule_of((0, 1, "read", 0, 4096, False)), DEVICE, tmp_path, "x3")


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 400)), min_size=1, max_size=200))
def test_a_lane_is_idle_when_it_gets_a_request(pairs: list[tuple[int, int]]) -> None:
    """As long as there are lanes enough; and there are no more lanes than were ever needed at once."""
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
@pytest.mark.parametrize("timing", ["original", "asap"])
def test_fio_understands_the_job(tmp_path: Path, timing: str) -> None:
    """On a file, whose requests fio counts like a device's."""
    target = tmp_path / "drive"
    target.write_bytes(bytes(1 << 20))
    schedule = schedule_of(
        (0, 100, "write", 0, 4096, False), (50, 20, "read", 8192, 8192, False), (200, 10, "write", 4096, 4096, True),
        (300, 10, "flush", 0, 0, False),
    )  # fmt: skip
    text = FioIolog().job(schedule, str(target), tmp_path, timing).replace("direct=1", "direct=0")
    (tmp_path / "job.fio").write_text(text)
    command = ["fio", "--output-format=json", "job.fio"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    job = json.loads(done.stdout)["jobs"][0]
    assert (job["read"]["total_ios"], job["write"]["total_ios"], job["sync"]["total_ios"]) == (1, 2, 2)
    assert (job["read"]["io_bytes"], job["write"]["io_bytes"]) == (8192, 8192)
