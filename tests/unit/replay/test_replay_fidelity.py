"""Check issue errors, lateness, order and bursts of replays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import request, requests_frame

from drivelab.replay.evaluation.fidelity import (
    bursts,
    issue_error_summary,
    issue_errors_us,
    lateness_by,
    order_inversions,
    parked,
    span_ratio,
)


def test_issue_errors_are_issue_minus_deadline() -> None:
    rows = [request(due=10 * n, issue=10 * n + late) for n, late in enumerate([0, 1, 50, 51])]
    result = issue_error_summary(issue_errors_us(requests_frame([*rows, request(due=90, issue=None, complete=None)])))
    assert result is not None
    assert (result["mean"], result["p50"], result["min"], result["max"]) == (25.5, 1.0, 0.0, 51.0)
    assert result["within_50us_pct"] == 75.0
    assert result["p95"] is None


def test_without_deadlines_there_is_no_lateness() -> None:
    frame = requests_frame([request(due=None, issue=5), request(due=None, issue=7)])
    assert issue_error_summary(issue_errors_us(frame)) is None
    assert lateness_by(frame) is None
    assert bursts(frame) is None


def test_lateness_is_split_by_cause() -> None:
    waits = [("", 3), ("", 5), ("depth", 400), ("dependency", 9000)]
    result = lateness_by(requests_frame([request(issue=late, complete=late, waited=why) for why, late in waits]))
    assert result is not None
    assert result["host"] == {"requests": 2, "p50": 3.0, "p99": None, "max": 5.0}
    assert result["depth"] == {"requests": 1, "p50": None, "p99": None, "max": 400.0}
    assert result["dependency"]["max"] == 9000.0


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 20)), st.booleans()), max_size=20))
def test_inversions_equal_those_found_by_comparing_all_pairs(rows: list[tuple[int | None, bool]]) -> None:
    issue = np.array([np.nan if at is None else at for at, _ in rows], np.float64)
    excused = np.array([flag for _, flag in rows], np.bool_)
    overtaking = {
        later
        for later in range(len(rows))
        for earlier in range(later)
        if not excused[earlier] and issue[later] < issue[earlier]
    }
    wanted = None if np.isnan(issue).all() else len(overtaking)
    assert order_inversions(issue, excused) == wanted


def test_a_parked_request_may_be_overtaken_and_may_not_overtake() -> None:
    parked_one = request(issue=500, waited="dependency")
    frame = requests_frame([parked_one, request(issue=10), request(issue=20)])
    assert order_inversions(frame["issue_ns"].to_numpy(), parked(frame)) == 0
    frame = requests_frame([request(issue=600), parked_one])
    assert order_inversions(frame["issue_ns"].to_numpy(), parked(frame)) == 1


def test_bursts_are_groups_due_within_a_microsecond() -> None:
    kept = [request(due=100 + n / 10, issue=101 + n) for n in range(8)]
    torn = [request(due=900, issue=901 + 50 * n) for n in range(32)]
    too_few = [request(due=5000, issue=5001) for _ in range(7)]
    lost = [request(due=6000, issue=6000 if n else None, complete=None) for n in range(9)]
    result = bursts(requests_frame(kept + torn + too_few + lost))
    assert result is not None
    assert (result["planned"], result["kept"], result["requests"], result["largest"]) == (3, 1, 49, 32)
    assert (result["spread_us"]["p50"], result["spread_us"]["max"]) == (7.0, 1550.0)


def test_a_steady_stream_is_cut_into_bursts_of_a_microsecond() -> None:
    result = bursts(requests_frame([request(due=n / 10, issue=n / 10) for n in range(110)]))
    assert result is not None
    assert (result["planned"], result["largest"]) == (10, 11)


def test_spans_compare_the_same_requests() -> None:
    nan = np.nan
    issue_s, planned_s, ratio = span_ratio(np.array([0, 2e9, 4e9, nan]), np.array([0, 1e9, 2e9, 100e9]))
    assert (issue_s, planned_s, ratio) == (4.0, 2.0, 2.0)
    assert span_ratio(np.array([5.0]), np.array([5.0])) == (0.0, 0.0, None)
    assert span_ratio(np.array([nan]), np.array([1.0])) == (None, None, None)
    assert span_ratio(np.array([1.0, 2e9 + 1]), np.array([nan, nan])) == (2.0, None, None)


def test_an_empty_schedule() -> None:
    frame = requests_frame([])
    assert issue_error_summary(issue_errors_us(frame)) is lateness_by(frame) is bursts(frame) is None
    assert order_inversions(np.empty(0), np.empty(0, np.bool_)) is None
    assert span_ratio(np.empty(0), np.empty(0)) == (None, None, None)


def test_requests_that_waited_for_a_dependency_are_no_burst() -> None:
    result = bursts(requests_frame([request(issue=9000 + n, waited="dependency") for n in range(8)] + [request()]))
    assert result is not None
    assert result["planned"] == 0
    assert result["spread_us"]["max"] == pytest.approx(None)
