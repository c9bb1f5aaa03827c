"""Captures without queue events, as of `blktrace -a issue -a complete`: requests begin at their issue."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from decoded import decoded_events
from trace_files import Event, write_capture
from whole_traces import read_trace

from drivelab.trace.decode import decode
from drivelab.trace.formats.common.importing import import_trace
from drivelab.trace.statistics.count import count

ISSUED: list[Event] = [
    (1000, "D", "WS", 72, 12288), (1500, "D", "R", 4096, 4096), (2000, "C", "WS", 72, 12288),
    (3000, "D", "FN", 0, 0), (3010, "C", "FN", 0, 0), (3020, "D", "WS", 136, 4096), (3030, "C", "WS", 136, 4096),
    (3040, "D", "FN", 0, 0), (3050, "C", "FN", 0, 0), (3060, "C", "WS", 136, 0),
    (4000, "C", "R", 4096, 4096), (4010, "C", "WS", 0, 0), (5000, "D", "DS", 800, 1 << 20),
]  # fmt: skip
"""A write, a read, a flush, a write, a flush, the ends of two flush sequences, a discard that never completes."""
EXTENT = ("operation", "offset_bytes", "length_bytes")


def test_each_dispatch_is_a_request_that_begins_with_it() -> None:
    decoded = decoded_events(*ISSUED)
    assert decoded.times == [
        (1000, 1000, 2000), (1500, 1500, 4000), (3000, 3000, 3010), (3020, 3020, 3030), (3040, 3040, 3050),
        (5000, 5000, None),
    ]  # fmt: skip
    assert list(map(tuple, decoded.requests[list(EXTENT)].astype(object).to_numpy())) == [
        ("write", 72 * 512, 12288), ("read", 4096 * 512, 4096), ("flush", 0, 0), ("write", 136 * 512, 4096),
        ("flush", 0, 0), ("discard", 800 * 512, 1 << 20),
    ]  # fmt: skip
    assert decoded.unmatched == {"uncompleted": 1}


def test_a_requeued_request_stays_one_request() -> None:
    decoded = decoded_events(
        (10, "D", "W", 8, 4096), (20, "R", "W", 8, 4096), (30, "D", "W", 8, 4096), (40, "C", "W", 8, 4096),
        (50, "D", "FN", 0, 0), (60, "R", "FN", 0, 0), (70, "D", "FN", 0, 0), (80, "C", "FN", 0, 0),
    )  # fmt: skip
    assert decoded.times == [(10, 30, 40), (50, 70, 80)]
    assert decoded.requests["requeues"].tolist() == [1, 1]
    assert decoded.unmatched == {}


def test_a_single_queue_event_keeps_the_usual_treatment() -> None:
    decoded = decoded_events(*ISSUED, (6000, "Q", "R", 0, 512))
    assert decoded.times == [(6000, None, None)]
    assert decoded.unmatched["dispatches"] > 0
    assert "begins" not in decoded.provenance


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    decode(write_capture(tmp_path / "c", ISSUED), tmp_path / "issued.parquet")
    return tmp_path / "issued.parquet"


def test_statistics_know_dispatch_to_completion_only(trace: Path) -> None:
    tables = count(trace, "issued")
    reads = tables["trace_operations"].set_index("operation").loc["read"]
    assert reads[["q2c_mean_us", "q2c_p50_us", "q2d_mean_us", "q2d_max_us"]].isna().all()
    assert reads["d2c_mean_us"] == pytest.approx(2.5)
    assert set(tables["trace_latency"]["phase"]) == {"D2C"}
    facts = tables["trace_overview"].iloc[0]
    assert facts["marks"] == ["incomplete", "issue times"]
    assert facts[[f"queue_depth_{what}" for what in ("mean", "p50", "p99", "max")]].isna().all()
    assert facts["dispatch_depth_max"] == 2
    over_time = tables["trace_over_time"]
    assert over_time[["queue_depth_mean", "queue_depth_max"]].isna().all(axis=None)
    assert over_time["dispatch_depth_mean"].notna().all()


@pytest.mark.skipif(shutil.which("blkparse") is None, reason="blkparse is not installed")
def test_blkparse_text_of_the_capture_imports_alike(trace: Path, tmp_path: Path) -> None:
    run = ["blkparse", "-q", "-i", "trace"]
    text = subprocess.run(run, cwd=tmp_path / "c", capture_output=True, text=True, check=True).stdout
    (tmp_path / "t.txt").write_text(text)
    assert import_trace(tmp_path / "t.txt", tmp_path / "again.parquet").begins == "issue"
    assert_equal(trace, tmp_path / "again.parquet")


def assert_equal(binary: Path, text: Path) -> None:
    """Compare all that both know; a text counts times from the first request."""
    (table, provenance), (imported, about) = map(read_trace, (binary, text))
    assert provenance["begins"] == about["begins"] == "issue"
    ours, theirs = table.to_pandas(), imported.to_pandas()
    times = ["queue_ns", "dispatch_ns", "complete_ns"]
    for requests in (ours, theirs):
        requests[times] -= requests["queue_ns"][0]
    names = [*times, *EXTENT, "process", "pid", "cpu", "sync", "meta", "fua", "readahead", "preflush", "error"]
    pd.testing.assert_frame_equal(ours[names], theirs[names], check_categorical=False)
