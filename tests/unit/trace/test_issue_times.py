"""Captures without queue events, as of `blktrace -a issue -a complete`: requests begin at their issue."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.text import Text
from trace_files import Event, write_capture

from drivelab.figures.base import trace_sheet
from drivelab.trace.decode import decode
from drivelab.trace.derive.merge import merge
from drivelab.trace.parquet_schema import read_trace
from drivelab.trace.statistics.batch import notes
from drivelab.trace.statistics.count import count

ISSUED: list[Event] = [
    (1000, "D", "WS", 72, 12288), (1500, "D", "R", 4096, 4096), (2000, "C", "WS", 72, 12288),
    (3000, "D", "FN", 0, 0), (3010, "C", "FN", 0, 0), (3020, "D", "WS", 136, 4096), (3030, "C", "WS", 136, 4096),
    (3040, "D", "FN", 0, 0), (3050, "C", "FN", 0, 0), (3060, "C", "WS", 136, 0),
    (4000, "C", "R", 4096, 4096), (4010, "C", "WS", 0, 0), (5000, "D", "DS", 800, 1 << 20),
]  # fmt: skip
"""A write, a read, a flush, a write, a flush, the ends of two flush sequences, a discard that never completes."""


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


def test_figures_show_the_depth_at_the_drive_and_the_mark(trace: Path) -> None:
    figure = trace_sheet.render("trace_depth", count(trace, "issued"))
    texts = "\n".join(str(text.get_text()) for text in figure.findobj(Text))  # type: ignore[attr-defined]
    assert "trace of ISSUE TIMES" in texts
    assert "dispatched to completed" in texts
    assert "queued to completed" not in texts


def test_a_merge_with_queue_times_is_marked(trace: Path, tmp_path: Path) -> None:
    decode(write_capture(tmp_path / "q", [(1, "Q", "R", 8, 4096), (2, "C", "R", 8, 4096)]), tmp_path / "q.parquet")
    merge([tmp_path / "q.parquet", trace], tmp_path / "both.parquet")
    assert "issue times" in notes(read_trace(tmp_path / "both.parquet")[1])
    operations = count(tmp_path / "both.parquet", "both")["trace_operations"]
    assert pd.isna(operations["q2c_max_us"]).all()
