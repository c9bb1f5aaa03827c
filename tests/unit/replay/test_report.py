"""The report of a replay: what it says of whole, broken-off and odd ones, and that it is JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import PREPARED, request, write_planned, write_results

from drivelab.replay import records
from drivelab.replay.outcome import write_outcome
from drivelab.replay.report import jsonable, report

ASAP = {**PREPARED, "choice": {**PREPARED["choice"], "timing": {"mode": "asap", "depth": 4}}}
WHOLE = [
    request("write", 1, 101, due=0, length=1 << 20, trace_us=400),
    request("flush", 502, 702, due=500),
    request("read", 1000, 1100, due=1000, length=1 << 20, trace_us=100),
]


def reported(
    folder: Path, rows: list[dict[str, Any]], prepared: dict[str, Any] = PREPARED, state: int = records.FINISHED,
    engine: dict[str, Any] | None = None, **header: int,
) -> dict[str, Any]:  # fmt: skip
    planned = write_planned(folder / "planned.parquet", rows, prepared)
    results = write_results(folder / "results.bin", rows, state, **header)
    write_outcome(planned, results, folder / "outcome.parquet", {})
    found = report(folder / "outcome.parquet", prepared, {"engine": "native", **(engine or {})})
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def test_a_whole_replay(tmp_path: Path) -> None:
    found = reported(tmp_path, WHOLE, wakeup_p50_ns=52_000, wakeup_max_ns=90_000)
    assert (found["state"], found["partial"], found["marks"]) == ("finished", False, [])
    assert found["planned"] == found["issued"] == found["completed"] == {
        "read": {"requests": 1, "bytes": 1 << 20}, "write": {"requests": 1, "bytes": 1 << 20},
        "flush": {"requests": 1, "bytes": 0},
    }  # fmt: skip
    assert found["failed"]["read"] == {"requests": 0, "bytes": 0}
    assert (found["timing"], found["dependencies"], found["errors"]) == ("original", "none", {})
    assert found["duration_s"] == pytest.approx(1099e-6)
    assert found["duration_ratio"] == pytest.approx(0.999)
    assert found["duration_basis"] == "first to last deadline"
    assert found["issue_error_us"]["mean"] == 1.0
    assert found["issue_error_us"]["within_50us_pct"] == 100.0
    assert found["busy_s"] == pytest.approx(200e-6)
    assert found["bandwidth_mib_s"] == pytest.approx(10_000)
    assert found["access_time_us"] == 100.0
    assert found["score"] == pytest.approx(10_000)
    assert found["score_formula"].startswith("score = sqrt(")
    assert found["comparison"]["trace_latency_us"]["mean"] == 250.0
    assert found["order_inversions"] == 0
    assert [one["stream"] for one in found["streams"]] == ["RND 1024KiB W", "RND 1024KiB R"]
    assert found["processes"][0]["requests"] == 2
    assert found["host"]["wakeup_us"] == {"p50": 52.0, "p95": 0.0, "p99": 0.0, "max": 90.0}
    assert found["kernel"] is None
    assert found["buffers"] == "registered"


def test_plain_buffers_are_reported(tmp_path: Path) -> None:
    found = reported(tmp_path, WHOLE, plain_buffers=1)
    assert found["buffers"] == "plain"
    (mark,) = found["marks"]
    assert mark.startswith("plain buffers: too little memory can be locked")


def test_as_soon_as_possible_throughput_counts(tmp_path: Path) -> None:
    rows = [request("read", 10 * n, 10 * n + 9, due=None, queued=40 * n) for n in range(5)]
    found = reported(tmp_path, rows, ASAP)
    assert found["timing"] == "as soon as possible at depth 4"
    assert found["issue_error_us"] is found["lateness_by"] is found["bursts"] is None
    assert found["duration_ratio"] == 0.25
    assert found["duration_basis"] == "first to last arrival in the trace"
    assert found["bandwidth_mib_s"] == pytest.approx(5 * 4096 / 2**20 / 45e-6)


@pytest.mark.parametrize(
    ("state", "told"),
    [(records.RUNNING, "killed"), (records.INTERRUPTED, "interrupted"), (records.HUNG, "hung"),
     (records.FAILED, "failed")],
)  # fmt: skip
def test_a_replay_that_was_broken_off_tells_of_what_it_did(tmp_path: Path, state: int, told: str) -> None:
    rows = [*WHOLE, request("read", 2000, None, due=2000), request("read", None, None, due=9000)]
    found = reported(tmp_path, rows, state=state)
    assert (found["state"], found["partial"]) == (told, True)
    assert found["marks"] == [
        f"{told}: the replay did not end as it should",
        "partial: 3 of 5 requests came back, 4 had been issued",
    ]
    assert found["completed"]["read"]["requests"] == 1
    assert found["issued"]["read"]["requests"] == 2
    assert found["access_time_us"] == 100.0
    assert found["duration_ratio"] == pytest.approx(1999 / 2000)
    assert found["duration_basis"] == "first to last deadline of the requests that were issued"


def test_errors_are_named_and_a_lossy_trace_is_marked(tmp_path: Path) -> None:
    rows = [*WHOLE, request("read", 2000, 2001, due=2000, error=5), request("read", 2000, 2001, due=2000, error=95)]
    found = reported(tmp_path, rows, {**PREPARED, "lost": 12})
    assert found["errors"] == {"EIO": 1, "EOPNOTSUPP": 1}
    assert found["failed"]["read"]["requests"] == 2
    assert (found["state"], found["partial"]) == ("finished", False)
    assert found["marks"] == [
        "lossy: the trace lacks 12 events",
        "errors: 2 of 5 requests failed (EIO 1, EOPNOTSUPP 1)",
    ]


def test_time_that_was_up_is_an_end_as_asked_and_the_rest_is_missing_all_the_same(tmp_path: Path) -> None:
    found = reported(tmp_path, [*WHOLE, request("read", None, None, due=9000)], state=records.TIME_IS_UP)
    assert (found["state"], found["partial"]) == ("time is up", True)
    assert found["marks"] == ["partial: 3 of 4 requests came back, 3 had been issued"]


@pytest.mark.parametrize(
    "rows",
    [
        [], [request("read", 0, 0)], [request("flush", 0, 10), request("flush", 5, 20)],
        [request("read", None, None)], [request("read", 1, None)], [request("read", 0, 5, length=0)],
        [request("discard", 0, 5), request("write-zeroes", 1, 6)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("prepared", [PREPARED, ASAP])
def test_odd_replays_have_nulls_where_there_is_nothing_to_tell(
    tmp_path: Path, rows: list[dict[str, Any]], prepared: dict[str, Any]
) -> None:
    found = reported(tmp_path, rows, prepared)
    assert found["score"] is None
    assert found["duration_ratio"] is None or len(rows) > 1


def test_a_schedule_that_began_anew_has_no_duration_to_compare_with(tmp_path: Path) -> None:
    write_planned(tmp_path / "planned.parquet", [request(due=None, queued=100 * n) for n in range(2)], ASAP)
    rows = [request("read", 10 * n, 10 * n + 9, due=None) for n in range(6)]
    results = write_results(tmp_path / "results.bin", rows, records.TIME_IS_UP)
    write_outcome(tmp_path / "planned.parquet", results, tmp_path / "o.parquet", {})
    found = report(tmp_path / "o.parquet", ASAP, {"engine": "native"})
    assert found["duration_ratio"] is found["duration_basis"] is None
    assert (found["partial"], found["completed"]["read"]["requests"]) == (False, 6)
    assert found["duration_s"] == pytest.approx(59e-6)


def test_an_engine_without_single_requests_gives_totals(tmp_path: Path) -> None:
    planned = write_planned(tmp_path / "planned.parquet", WHOLE)
    write_outcome(planned, None, tmp_path / "o.parquet", {})
    totals = {"access_time_us": 5.0, "issued": {"read": {"requests": 1, "bytes": 7}}}
    found = report(tmp_path / "o.parquet", PREPARED, {"engine": "fio", "state": "finished", "totals": totals})
    assert (found["access_time_us"], found["issued"]["read"]["bytes"]) == (5.0, 7)
    assert (found["partial"], found["marks"]) == (False, [])
    assert found["planned"]["read"]["requests"] == 1
    assert found["busy_s"] is found["duration_ratio"] is found["issue_error_us"] is found["order_inversions"] is None
    with pytest.raises(ValueError, match="acess_time_us"):
        report(tmp_path / "o.parquet", PREPARED, {"engine": "fio", "totals": {"acess_time_us": 5.0}})


def test_the_kernels_view_and_the_engines_state_are_passed_on(tmp_path: Path) -> None:
    engine = {"state": "disappeared", "kernel_reason": "it sees block devices only", "wakeup_us": {"p50": 3.0}}
    found = reported(tmp_path, WHOLE, engine=engine)
    assert (found["state"], found["partial"]) == ("disappeared", True)
    assert found["kernel_reason"] == "it sees block devices only"
    assert found["host"]["wakeup_us"] == {"p50": 3.0}


def test_more_in_flight_than_the_trace_ever_had_is_marked(tmp_path: Path) -> None:
    rows = [request("read", 10 * n, 10 * n + 500, due=10 * n, trace_us=9) for n in range(100)]
    found = reported(tmp_path, rows)
    assert found["in_flight"]["trace"] == {"most": 1, "mean": 1.0}
    assert found["in_flight"]["replay"]["most"] == 50
    assert found["in_flight"]["replay"]["mean"] == pytest.approx(100 * 500 / 1490)
    assert found["marks"] == ["overloaded: up to 50 in flight, 1 in the trace"]
    asap = reported(tmp_path, [{**row, "deadline_ns": None} for row in rows], ASAP)
    assert asap["marks"] == []
    unknown = reported(tmp_path, [{**row, "trace_latency_ns": None} for row in rows])
    assert (unknown["in_flight"]["trace"], unknown["marks"]) == ({"most": None, "mean": None}, [])


def test_waiting_for_a_place_and_another_duration_are_marked(tmp_path: Path) -> None:
    rows = [request("read", 237 * n, 237 * n + 9, due=100 * n, waited="depth" if n < 12 else "") for n in range(100)]
    found = reported(tmp_path, rows)
    assert found["marks"] == ["late: 12 % of the requests waited for a place in flight", "slower: duration ratio 2.37"]
    quick = reported(tmp_path, [request("read", 90 * n, 90 * n + 9, due=100 * n) for n in range(100)])
    assert quick["marks"] == ["faster: duration ratio 0.900"]


def test_a_partial_replay_has_no_score_and_what_never_came_back_kept_the_drive_busy(tmp_path: Path) -> None:
    rows = [request("read", 0, 100, due=0), request("read", 200, None, due=200)]
    found = reported(tmp_path, rows, state=records.HUNG, heartbeat_ns=5_000_000)
    assert found["score"] is None
    assert found["busy_s"] == pytest.approx(4900e-6)
    assert found["bandwidth_mib_s"] == pytest.approx(4096 / 2**20 / 4900e-6)


NUMBERS = st.none() | st.integers() | st.floats() | st.text()


@given(st.recursive(NUMBERS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20))
def test_anything_becomes_json(value: Any) -> None:
    json.dumps(jsonable(value), allow_nan=False)
