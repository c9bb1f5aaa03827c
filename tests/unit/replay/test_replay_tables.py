"""Check the replay tables: operations, streams, latency bins, course over time, passes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import replayed, request
from rows import key, table

from drivelab.replay.evaluation.fidelity import issue_error_bins, latency_bins
from drivelab.replay.evaluation.over_time import over_time
from drivelab.replay.evaluation.passes import passes
from drivelab.replay.evaluation.replay_report import counts, operations
from drivelab.replay.evaluation.stream_results import OTHERS, SHOWN, streams
from drivelab.tables.schemas import SCHEMAS

PLACE = {"step", "phase", "phase_pass", "trace", "repeat", "counted"}


def own_columns(name: str) -> set[str]:
    return set(SCHEMAS[name].names) - set(key()) - {"reduced", "virtual"} - PLACE


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("replay_operations", operations), ("replay_streams", streams), ("replay_latency", latency_bins),
        ("replay_issue_errors", issue_error_bins), ("replay_over_time", over_time),
    ],
)  # fmt: skip
@pytest.mark.parametrize("rows", [[], [request()], [request(issue=None, complete=None)], [request("flush")]])
def test_tables_have_the_columns_of_their_schemas(name: str, function: Any, rows: list[dict[str, Any]]) -> None:
    assert set(function(replayed(rows)).columns) == own_columns(name)


def test_operations_are_counted_by_stage() -> None:
    result = operations(
        replayed([
            request("write", 0, 100, trace_us=50), request("write", 0, 300), request("write", 0, 9, error=5),
            request("write", 0, None), request("write", None, None), request("flush", 0, 700),
        ])
    )  # fmt: skip
    assert result["operation"].tolist() == ["write", "flush"]
    write = result.iloc[0]
    stages = ("planned", "issued", "completed", "failed")
    assert [write[f"{stage}_requests"] for stage in stages] == [5, 4, 2, 1]
    assert [write[f"{stage}_bytes"] for stage in stages] == [5 * 4096, 4 * 4096, 2 * 4096, 4096]
    assert (write["mean_latency_us"], write["max_latency_us"], write["trace_mean_latency_us"]) == (200.0, 300.0, 50.0)
    assert np.isnan(write["p99_latency_us"])
    assert counts(result, "completed") == {
        "write": {"requests": 2, "bytes": 8192},
        "flush": {"requests": 1, "bytes": 0},
    }


def test_streams_have_snia_names_and_are_sequential_or_random() -> None:
    rows = [request("read", 0, 100 + n, offset=4096 * n, trace_us=10, process="db") for n in range(4)]
    rows += [request("write", 0, 1000, offset=1 << 30, length=65536, process="")]
    result = streams(replayed(rows)).set_index(["stream_kind", "stream"])
    assert result.index.tolist() == [
        ("stream", "SEQ 4KiB R"), ("stream", "RND 4KiB R"), ("stream", "RND 64KiB W"),
        ("process", "db"), ("process", "unknown"),
    ]  # fmt: skip
    assert result["requests"].tolist() == [3, 1, 1, 4, 1]
    assert result["share_pct"].tolist() == pytest.approx([60, 20, 20, 80, 20])
    assert result["access_time_us"].tolist() == [102.0, 100.0, 1000.0, 101.5, 1000.0]
    assert result["bytes"].tolist() == [12288, 4096, 65536, 16384, 65536]
    assert result["trace_access_time_us"].tolist()[:2] == [10.0, 10.0]


def test_rare_streams_share_one_row() -> None:
    rows = [request("read", 0, n, length=512 * n, offset=n << 30) for n in range(1, SHOWN + 4) for _ in range(99 - n)]
    result = streams(replayed(rows))
    result = result[result["stream_kind"] == "stream"]
    assert len(result) == SHOWN + 1
    assert result["stream"].iloc[-1] == OTHERS
    assert result["requests"].iloc[-1] == sum(99 - n for n in range(SHOWN + 1, SHOWN + 4))
    assert result["share_pct"].sum() == pytest.approx(100)
    assert result["requests"].sum() == len(rows)


def test_latencies_of_replay_and_trace_are_in_fios_bins() -> None:
    rows = [request("read", 0, 0.1, trace_us=0.05), request("read", 0, 0.1), request("write", 0, 1000)]
    result = latency_bins(replayed(rows))
    assert result[["operation", "source", "latency_ns", "count"]].to_numpy().tolist()[:2] == [
        ["read", "replay", 100, 2], ["read", "trace", 50, 1]
    ]  # fmt: skip
    assert result.iloc[2]["latency_ns"] == pytest.approx(1_000_000, rel=0.008)
    errors = issue_error_bins(replayed([request(due=1, issue=1), request(due=1, issue=1.1), request(due=1)]))
    assert errors.to_numpy().tolist() == [[0, 2], [100, 1]]


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 60)), min_size=1, max_size=20), st.integers(1, 7))
def test_the_mean_depth_is_the_share_of_time_in_flight(pairs: list[tuple[int, int]], intervals: int) -> None:
    rows = [request(due=at, issue=at, complete=at + lasting, trace_us=lasting) for at, lasting in sorted(pairs)]
    result = over_time(replayed(rows), intervals)
    edges = np.linspace(0, max(at + lasting for at, lasting in pairs), intervals + 1)
    for number, (begin, end) in enumerate(pairwise(edges)):
        area = sum(max(0.0, min(end, at + lasting) - max(begin, at)) for at, lasting in pairs)
        assert result["depth"][number] == pytest.approx(area / (end - begin), abs=1e-6)
        assert result["planned_depth"][number] == pytest.approx(area / (end - begin), abs=1e-6)
    assert result["planned_requests"].sum() == result["issued_requests"].sum() == len(rows)


def test_the_course_counts_requests_when_due_and_when_issued() -> None:
    rows = [request("read", 600, 700, due=0, length=1 << 20), request("flush", 900, 1000, due=900)]
    result = over_time(replayed(rows), 2)
    assert result["begin_s"].tolist() == [0.0, 500e-6]
    assert result["planned_requests"].tolist() == [1, 1]
    assert result["issued_requests"].tolist() == [0, 2]
    assert result["issued_bytes"].tolist() == [0, 1 << 20]
    assert result["iops"].tolist() == [0, pytest.approx(2000)]
    assert result["bandwidth_mib_s"].tolist() == [0, pytest.approx(2000)]
    assert np.isnan(result["mean_latency_us"][0])
    assert result["mean_latency_us"][1] == 100.0
    assert result["issue_error_p50_us"][1] == 0.0


def test_without_deadlines_the_planned_course_is_unknown() -> None:
    result = over_time(replayed([request(due=None, issue=1, complete=9)]), 3)
    assert result["planned_requests"].isna().all()
    assert result["planned_depth"].isna().all()
    assert result["issued_requests"].sum() == 1


def replay(trace: str, **more: Any) -> dict[str, Any]:
    return {
        **key(), "step": 1, "trace": trace, "repeat": 2, "warm": True, "counted": True, "timing_mode": "idle-capped",
        "read_ios": 30, "write_ios": 10, "read_bytes": 30 << 20, "write_bytes": 10 << 20, "busy_s": 2.0,
        "access_time_us": 100.0, "duration_s": 5.0, **more,
    }  # fmt: skip


def test_a_pass_is_the_sum_of_its_traces() -> None:
    rows = [replay("boot"), replay("office", read_ios=120, write_ios=0, busy_s=0.5, access_time_us=20.0, duration_s=1)]
    result = passes(table("replays", [*rows, replay("boot", repeat=3)]))
    assert result[["repeat", "traces", "trace_names"]].to_numpy().tolist() == [[2, 2, "boot, office"], [3, 1, "boot"]]
    first = result.iloc[0]
    assert first["bandwidth_mib_s"] == pytest.approx(80 / 2.5)
    assert first["access_time_us"] == pytest.approx((40 * 100 + 120 * 20) / 160)
    assert first["score"] == pytest.approx((32 * 1e6 / 40) ** 0.5)
    assert (first["busy_s"], first["duration_s"]) == (2.5, 6.0)
    assert set(result.columns) == set(SCHEMAS["replay_passes"].names)


def test_a_pass_with_a_partial_replay_or_an_unknown_value_has_no_score() -> None:
    for changed in ({"partial": True}, {"busy_s": None}, {"access_time_us": None}):
        result = passes(table("replays", [replay("boot"), replay("office", **changed)])).iloc[0]
        assert pd.isna(result["score"])
    flushes = replay("flushes", read_ios=0, write_ios=0, read_bytes=0, write_bytes=0, busy_s=None, access_time_us=None)
    result = passes(table("replays", [replay("boot"), flushes])).iloc[0]
    assert (result["access_time_us"], result["busy_s"]) == (100.0, 2.0)
    assert pd.isna(passes(table("replays", [flushes])).iloc[0]["score"])


def test_without_replays_there_are_no_passes() -> None:
    assert passes(table("replays", [])).empty
