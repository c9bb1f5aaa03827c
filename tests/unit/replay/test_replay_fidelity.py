"""Check issue errors, lateness and order of replays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import replayed, request

from drivelab.replay.evaluation.fidelity import issue_errors, lateness_by, order_inversions, span_ratio


def test_issue_errors_are_issue_minus_deadline() -> None:
    rows = [request(due=10 * n, issue=10 * n + late) for n, late in enumerate([0, 1, 50, 51])]
    result = issue_errors(replayed([*rows, request(due=90, issue=None, complete=None)]))
    assert result is not None
    assert (result["mean"], result["p50"], result["min"], result["max"]) == (25.5, 1.0, 0.0, 51.0)
    assert result["within_50us_pct"] == 75.0
    assert result["p95"] is None


def test_without_deadlines_there_is_no_lateness() -> None:
    frame = replayed([request(due=None, issue=5), request(due=None, issue=7)])
    assert issue_errors(frame) is None
    assert lateness_by(frame) is None


def test_lateness_is_split_by_cause() -> None:
    waits = [("", 3), ("", 5), ("depth", 400), ("dependency", 9000)]
    result = lateness_by(replayed([request(issue=late, complete=late, waited=why) for why, late in waits]))
    assert result is not None
    assert result["host"] == {"requests": 2, "p50": 3.0, "p99": None, "max": 5.0}
    assert result["depth"] == {"requests": 1, "p50": None, "p99": None, "max": 400.0}
    assert result["dependency"]["max"] == 9000.0


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(0, 20)), st.booleans()), max_size=20))
def test_inversions_equal_those_found_by_comparing_all_pairs(rows: list[tuple[int | None, bool]]) -> None:
    """A parked request may be overtaken, and may not overtake."""
    overtaking = {
        later
        for later in range(len(rows))
        for earlier in range(later)
        if not rows[earlier][1] and None not in (rows[earlier][0], rows[later][0]) and rows[later][0] < rows[earlier][0]
    }
    requests = replayed([request(issue=at, waited="dependency" if parked else "") for at, parked in rows])
    wanted = None if all(at is None for at, _ in rows) else len(overtaking)
    assert order_inversions(requests) == wanted


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
    frame = replayed([])
    assert issue_errors(frame) is lateness_by(frame) is order_inversions(frame) is None
