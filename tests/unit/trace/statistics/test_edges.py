"""Statistics of traces with missing, coarse or contradictory values."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.tables import io
from drivelab.tables.schemas import TRACE_TABLES
from drivelab.trace.statistics.bins import ERROR_PCT, histogram_sql
from drivelab.trace.statistics.overview import notes
from drivelab.trace.statistics.requests import MOST, Intervals


def stored(model: ModuleType, tables: dict, folder: Path) -> None:
    """Check that the tables match the schema, by storing them."""
    assert list(tables) == list(TRACE_TABLES)
    for name, frame in tables.items():
        io.write(frame, folder / f"{name}.parquet", name)
        assert len(io.read(folder / f"{name}.parquet", name)) == len(frame)


@pytest.mark.parametrize("operation", ["read", "flush", "discard"])
def test_a_single_request(model: ModuleType, tmp_path: Path, operation: str) -> None:
    tables = model.counted([model.row(3, operation, length=0 if operation == "flush" else 4096)])
    stored(model, tables, tmp_path)
    overview = tables["trace_overview"].iloc[0]
    assert (overview["requests"], overview["duration_s"]) == (1, 0)
    assert overview["footprint_bytes"] == (4096 if operation == "read" else 0)
    assert np.isnan(overview["queue_depth_mean"])
    assert np.isnan(overview["interarrival_mean_us"])
    assert np.isnan(overview["idle_share_pct"])
    assert tables["trace_over_time"]["requests"].tolist() == [1]
    assert tables["trace_over_time"]["requests_per_s"].isna().all()


def test_without_completions(model: ModuleType, tmp_path: Path) -> None:
    rows = [model.row(number * 500_000_000, "write", number * 4096) for number in range(20)]
    tables = model.counted(rows)
    stored(model, tables, tmp_path)
    overview = tables["trace_overview"].iloc[0]
    assert overview["without_completion"] == overview["without_dispatch"] == 20
    assert np.isnan(overview["queue_depth_max"])
    assert overview["merged"] is None or np.isnan(overview["merged"])
    assert overview["idle_basis"] == "long gaps between arrivals"
    assert overview["idle_share_pct"] == pytest.approx(100)
    assert tables["trace_latency"].empty
    assert tables["trace_over_time"]["queue_depth_mean"].isna().all()


def test_a_few_missing_completions_are_skipped_and_counted(model: ModuleType) -> None:
    rows = [model.row(1000 * n, complete_ns=None if n == 7 else 1000 * n + 500) for n in range(200)]
    overview = model.counted(rows)["trace_overview"].iloc[0]
    assert overview["without_completion"] == 1
    assert overview["idle_basis"] == "nothing in flight"
    assert overview["queue_depth_max"] == 1


def test_contradictory_times_are_skipped_and_counted(model: ModuleType) -> None:
    rows = [
        model.row(1000, dispatch_ns=1100, complete_ns=900),
        model.row(2000, dispatch_ns=1500, complete_ns=2500),
        model.row(3000, dispatch_ns=3500, complete_ns=3200),
        model.row(4000, dispatch_ns=4100, complete_ns=4200),
    ]
    tables = model.counted(rows)
    overview, read = tables["trace_overview"].iloc[0], tables["trace_operations"].iloc[0]
    assert (overview["times_backwards"], overview["without_completion"], overview["without_dispatch"]) == (3, 1, 2)
    assert (read["q2c_max_us"], read["d2c_max_us"], read["q2d_max_us"]) == (0.5, 0.1, 0.1)


def test_whole_seconds_fall_into_equal_intervals(model: ModuleType) -> None:
    rows = [model.row(second * 10**9, offset=4096 * k) for second in range(1000) for k in range(3)]
    tables = model.counted(rows, format_imported="tencent", source="x.csv", time_resolution_ns=10**9)
    assert tables["trace_over_time"]["requests"].eq(15).all()
    assert tables["trace_over_time"]["requests_per_s"].eq(3).all()
    assert tables["trace_burstiness"]["window_s"].tolist() == [1, 10]
    overview = tables["trace_overview"].iloc[0]
    assert (overview["idle_gap_s"], overview["idle_share_pct"]) == (1.0, 0.0)
    assert list(overview["marks"]) == ["imported"]
    assert overview["time_resolution_ns"] == 10**9


def test_all_requests_within_one_tick_of_an_import(model: ModuleType, tmp_path: Path) -> None:
    tables = model.counted([model.row(0, offset=4096 * k) for k in range(50)], time_resolution_ns=10**9)
    stored(model, tables, tmp_path)
    assert tables["trace_over_time"][["begin_s", "end_s", "requests"]].to_numpy().tolist() == [[0, 1, 50]]


def test_up_to_32_interleaved_streams_are_sequential(model: ModuleType) -> None:
    for streams, share in ((32, 100 * 9 / 10), (33, 0)):
        rows = [
            model.row(turn * streams + stream, "read", (stream << 30) + turn * 4096)
            for turn in range(10)
            for stream in range(streams)
        ]
        overview = model.counted(rows, 50)["trace_overview"].iloc[0]
        assert overview["sequential_share_pct"] == pytest.approx(share)
        assert overview["strict_sequential_share_pct"] == 0


def test_marks_are_explained() -> None:
    marks = notes(
        {
            "lost": {"overrun": 2000, "dropped": 1},
            "malformed": 3,
            "unmatched": {"C": 1},
            "begins": "issue",
            "derived": [{"step": "cut", "from_s": 1}, {"step": "drop-idle"}],
            "format_imported": "msr",
            "source": "a.csv.gz",
            "virtual": True,
        }
    )
    assert tuple(marks) == ("lossy", "incomplete", "issue times", "derived", "imported", "virtual")
    assert marks["lossy"] == "2,001 events were lost (overrun 2,000, dropped 1)"
    assert marks["incomplete"] == "3 malformed lines of the source were skipped; unmatched events: C 1"
    assert marks["derived"] == "derived by: cut, drop-idle"
    assert marks["imported"] == "imported from a.csv.gz (msr)"
    assert notes({"lost": {}, "unmatched": {}}) == {}


@given(st.lists(st.integers(0, (1 << 62) - 1) | st.integers(0, 62).map(lambda power: (1 << power) - 1), min_size=1))
def test_each_value_is_in_its_bin_and_totals_are_exact(values: list[int]) -> None:
    listed = ", ".join(f"({value})" for value in values)
    with duckdb.connect() as database:
        rows = database.execute(histogram_sql(f"SELECT * FROM (VALUES {listed}) listed(value)")).fetchall()
    assert sum(total for _, _, _, total, *_ in rows) == sum(values)
    for low, high, requests, _, _, least, largest in rows:
        inside = [value for value in values if low <= value <= high]
        assert (requests, least, largest) == (len(inside), min(inside), max(inside))
        assert abs((low + high) / 2 - least) <= ERROR_PCT / 100 * least
    assert sum(row[2] for row in rows) == len(values)


@given(st.integers(0, 10**16), st.sampled_from([1, 100, 1000, 10**9]))
def test_intervals_cover_the_trace(ticks: int, resolution_ns: int) -> None:
    duration_ns = ticks // resolution_ns * resolution_ns
    intervals = Intervals.of(17, duration_ns, resolution_ns)
    assert 1 <= intervals.count <= MOST
    assert intervals.width_ns % resolution_ns == 0
    assert intervals.number(np.array([17, 17 + duration_ns])).tolist() == [0, intervals.count - 1]
    edges = intervals.edges_ns()
    assert edges[-1] == duration_ns + resolution_ns
    assert (np.diff(edges) > 0).all()
