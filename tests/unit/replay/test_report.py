"""Reports of complete, interrupted and unusual replays, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import PREPARED, request, write_planned, write_results

from drivelab.replay import engine_records
from drivelab.replay.evaluation.replay_report import jsonable, report
from drivelab.replay.outcome import write_outcome

ASAP = {**PREPARED, "choice": {**PREPARED["choice"], "timing": {"mode": "asap", "depth": 4}}}
WHOLE = [
    request("write", 1, 101, due=0, length=1 << 20, trace_us=400),
    request("flush", 502, 702, due=500),
    request("read", 1000, 1100, due=1000, length=1 << 20, trace_us=100),
]


def reported(
    folder: Path, rows: list[dict[str, Any]], prepared: dict[str, Any] = PREPARED, state: int = engine_records.FINISHED,
    engine: dict[str, Any] | None = None, **header: int,
) -> dict[str, Any]:  # fmt: skip
    planned = write_planned(folder / "planned.parquet", rows, prepared)
    results = write_results(folder / "results.bin", rows, state, **header)
    write_outcome(planned, results, folder / "outcome.parquet", {})
    result = report(folder / "outcome.parquet", prepared, "native")
    assert json.loads(json.dumps(result, allow_nan=False)) == result
    return result


def test_a_complete_replay(tmp_path: Path) -> None:
    result = reported(tmp_path, WHOLE, wakeup_p50_ns=52_000, wakeup_max_ns=90_000)
    assert (result["state"], result["partial"], result["marks"]) == ("finished", False, [])
    assert result["planned"] == result["issued"] == result["completed"] == {
        "read": {"requests": 1, "bytes": 1 << 20}, "write": {"requests": 1, "bytes": 1 << 20},
        "flush": {"requests": 1, "bytes": 0},
    }  # fmt: skip
    assert result["failed"]["read"] == {"requests": 0, "bytes": 0}
    assert (result["timing"], result["dependencies"], result["errors"]) == ("original", "none", {})
    assert result["duration_s"] == pytest.approx(1099e-6)
    assert result["duration_ratio"] == pytest.approx(0.999)
    assert result["duration_basis"] == "first to last deadline"
    assert result["issue_error_us"]["mean"] == 1.0
    assert result["issue_error_us"]["within_50us_pct"] == 100.0
    assert result["busy_s"] == pytest.approx(200e-6)
    assert result["bandwidth_mib_s"] == pytest.approx(10_000)
    assert result["access_time_us"] == 100.0
    assert result["score"] == pytest.approx(10_000)
    assert result["score_formula"].startswith("score = sqrt(")
    assert result["comparison"]["trace_latency_us"]["mean"] == 250.0
    assert result["order_inversions"] == 0
    assert [stream["stream"] for stream in result["streams"]] == ["RND 1024KiB W", "RND 1024KiB R"]
    assert result["processes"][0]["requests"] == 2
    assert result["host"]["wakeup_us"] == {"p50": 52.0, "p95": 0.0, "p99": 0.0, "max": 90.0}
    assert result["buffers"] == "registered"


def test_how_requests_were_issued(tmp_path: Path) -> None:
    result = reported(tmp_path, WHOLE, plain_buffers=1, threads=1)
    assert (result["buffers"], result["issued_by"]) == ("plain", "1 thread")
    (mark,) = result["marks"]
    assert mark.startswith("plain buffers: the locked-memory limit is too low")
    assert reported(tmp_path, WHOLE, threads=2, polled=1)["issued_by"] == "2 threads, polled"


def test_asap_reports_throughput(tmp_path: Path) -> None:
    rows = [request("read", 10 * n, 10 * n + 9, due=None, queued=40 * n) for n in range(5)]
    result = reported(tmp_path, rows, ASAP)
    assert result["timing"] == "as soon as possible at depth 4"
    assert result["issue_error_us"] is result["lateness_by"] is None
    assert result["duration_ratio"] == 0.25
    assert result["duration_basis"] == "first to last arrival in the trace"
    assert result["bandwidth_mib_s"] == pytest.approx(5 * 4096 / 2**20 / 45e-6)


@pytest.mark.parametrize(
    ("state", "reported_state"),
    [(engine_records.RUNNING, "killed"), (engine_records.INTERRUPTED, "interrupted"), (engine_records.HUNG, "hung"),
     (engine_records.FAILED, "failed")],
)  # fmt: skip
def test_an_interrupted_replay_reports_its_replayed_part(tmp_path: Path, state: int, reported_state: str) -> None:
    rows = [*WHOLE, request("read", 2000, None, due=2000), request("read", None, None, due=9000)]
    result = reported(tmp_path, rows, state=state)
    assert (result["state"], result["partial"]) == (reported_state, True)
    assert result["marks"] == [
        f"{reported_state}: the replay did not finish",
        "partial: 3 of 5 requests completed or failed, 4 were issued",
    ]
    assert result["completed"]["read"]["requests"] == 1
    assert result["issued"]["read"]["requests"] == 2
    assert result["access_time_us"] == 100.0
    assert result["duration_ratio"] == pytest.approx(1999 / 2000)
    assert result["duration_basis"] == "first to last deadline of the requests that were issued"


def test_errors_are_named_and_a_lossy_trace_is_marked(tmp_path: Path) -> None:
    rows = [*WHOLE, request("read", 2000, 2001, due=2000, error=5), request("read", 2000, 2001, due=2000, error=95)]
    result = reported(tmp_path, rows, {**PREPARED, "lost": 12})
    assert result["errors"] == {"EIO": 1, "EOPNOTSUPP": 1}
    assert result["failed"]["read"]["requests"] == 2
    assert (result["state"], result["partial"]) == ("finished", False)
    assert result["marks"] == [
        "lossy: the trace lacks 12 events",
        "errors: 2 of 5 requests failed (EIO 1, EOPNOTSUPP 1)",
    ]


def test_issue_times_and_the_end_of_the_runtime_are_marked(tmp_path: Path) -> None:
    result = reported(tmp_path, WHOLE, {**PREPARED, "provenance": {"begins": "issue"}})
    assert [mark.partition(":")[0] for mark in result["marks"]] == ["issue times"]
    result = reported(tmp_path, [*WHOLE, request("read", None, None, due=9000)], state=engine_records.TIME_IS_UP)
    assert (result["state"], result["partial"]) == ("time is up", True)
    assert result["marks"] == ["partial: 3 of 4 requests completed or failed, 3 were issued"]


@pytest.mark.parametrize(
    "rows",
    [
        [], [request("read", 0, 0)], [request("flush", 0, 10), request("flush", 5, 20)],
        [request("read", None, None)], [request("read", 1, None)], [request("read", 0, 5, length=0)],
        [request("discard", 0, 5), request("write-zeroes", 1, 6)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("prepared", [PREPARED, ASAP])
def test_unusual_replays_have_nulls_for_unknown_values(
    tmp_path: Path, rows: list[dict[str, Any]], prepared: dict[str, Any]
) -> None:
    result = reported(tmp_path, rows, prepared)
    assert result["score"] is None
    assert result["duration_ratio"] is None or len(rows) > 1


def test_a_higher_depth_than_in_the_trace_is_marked(tmp_path: Path) -> None:
    rows = [request("read", 10 * n, 10 * n + 500, due=10 * n, trace_us=9) for n in range(100)]
    result = reported(tmp_path, rows)
    assert result["in_flight"]["trace"] == {"most": 1, "mean": 1.0}
    assert result["in_flight"]["replay"]["most"] == 50
    assert result["in_flight"]["replay"]["mean"] == pytest.approx(100 * 500 / 1490)
    assert result["marks"] == ["overloaded: up to 50 in flight, 1 in the trace"]
    asap = reported(tmp_path, [{**row, "deadline_ns": None} for row in rows], ASAP)
    assert asap["marks"] == []
    unknown = reported(tmp_path, [{**row, "trace_latency_ns": None} for row in rows])
    assert (unknown["in_flight"]["trace"], unknown["marks"]) == ({"most": None, "mean": None}, [])


def test_waiting_for_depth_and_another_duration_are_marked(tmp_path: Path) -> None:
    rows = [request("read", 237 * n, 237 * n + 9, due=100 * n, waited="depth" if n < 12 else "") for n in range(100)]
    result = reported(tmp_path, rows)
    assert result["marks"] == ["late: 12 % of the requests waited for the depth limit", "slower: duration ratio 2.37"]
    quick = reported(tmp_path, [request("read", 90 * n, 90 * n + 9, due=100 * n) for n in range(100)])
    assert quick["marks"] == ["faster: duration ratio 0.900"]


def test_a_partial_replay_has_no_score_and_uncompleted_requests_are_busy(tmp_path: Path) -> None:
    rows = [request("read", 0, 100, due=0), request("read", 200, None, due=200)]
    result = reported(tmp_path, rows, state=engine_records.HUNG, heartbeat_ns=5_000_000)
    assert result["score"] is None
    assert result["busy_s"] == pytest.approx(4900e-6)
    assert result["bandwidth_mib_s"] == pytest.approx(4096 / 2**20 / 4900e-6)


NUMBERS = st.none() | st.integers() | st.floats() | st.text()


@given(st.recursive(NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20))
def test_anything_becomes_json(value: Any) -> None:
    json.dumps(jsonable(value), allow_nan=False)
