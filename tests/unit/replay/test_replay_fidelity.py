"""Check issue errors, lateness and order of replays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import request, requests_frame

from drivelab.replay.evaluation.fidelity import (
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
    late = request(issue=500, waited="dependency")
    for rows, inversions in (([late, request(issue=10), request(issue=20)], 0), ([request(issue=600), late], 1)):
        frame = requests_frame(rows)
        assert order_inversions(frame["issue_ns"].to_numpy(), parked(frame)) == inversions


@pytest.mark.parametrize(
    ("issued", "planned", "spans"),
    [
        ([0, 2e9, 4e9, np.nan], [0, 1e9, 2e9, 100e9], (4.0, 2.0, 2.0)),  # of the same requests
        ([5.0], [5.0], (0.0, 0.0, None)),
        ([np.nan], [1.0], (None, None, None)),
        ([1.0, 2e9 + 1], [np.nan, np.nan], (2.0, None, None)),
        ([], [], (None, None, None)),
    ],
)
def test_spans_compare_the_same_requests(issued: list[float], planned: list[float], spans: tuple[float | None]) -> None:
    assert span_ratio(np.array(issued), np.array(planned)) == spans


def test_an_empty_schedule() -> None:
    frame = requests_frame([])
    assert issue_error_summary(issue_errors_us(frame)) is lateness_by(frame) is None
    assert order_inversions(np.empty(0), np.empty(0, np.bool_)) is None
