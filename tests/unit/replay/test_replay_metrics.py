"""Check access time, busy time, bandwidth, score and percentiles against independent values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_outcomes import replayed, request

from drivelab.replay.evaluation.metrics import busy_ns, compare_with_trace, response, score, service
from drivelab.replay.evaluation.requests import PERCENTS, distribution, percentiles

INTERVALS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30)), max_size=30)


@given(INTERVALS)
def test_busy_time_is_the_time_with_a_request_in_flight(pairs: list[tuple[int, int]]) -> None:
    begin = np.array([at for at, _ in pairs], np.float64)
    end = np.array([at + lasting for at, lasting in pairs], np.float64)
    busy = {tick for at, lasting in pairs for tick in range(at, at + lasting)}
    assert busy_ns(begin, end) == len(busy)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=300))
def test_percentiles_are_nearest_ranks_and_none_for_too_few_values(values: list[int]) -> None:
    ordered = np.sort(np.array(values, np.float64))
    for percent, result in zip(PERCENTS, percentiles(ordered, PERCENTS), strict=True):
        least = math.ceil(100 / (100 - percent) - 1e-6)
        wanted = None if len(values) < least else np.percentile(ordered, percent, method="inverted_cdf")
        assert result == wanted


@pytest.mark.parametrize(("percent", "least"), [(50, 2), (90, 10), (99, 100), (99.9, 1000), (99.99, 10_000)])
def test_a_percentile_needs_a_value_above_it(percent: float, least: int) -> None:
    values = np.arange(least, dtype=np.float64)
    assert percentiles(values, [percent]) == [least - 2.0]
    assert percentiles(values[:-1], [percent]) == [None]


def test_a_single_value_has_a_mean_and_a_max() -> None:
    nothing = dict.fromkeys(("p50", "p90", "p99", "p999", "p9999", "p99999"))
    assert distribution(np.array([3.0])) == {"mean": 3.0, **nothing, "max": 3.0}
    assert distribution(np.empty(0)) == {"mean": None, **nothing, "max": None}


def test_metrics_by_hand() -> None:
    result = service(
        replayed([
            request("read", 0, 100, length=65536),
            request("write", 50, 250, length=65536),  # overlaps: busy from 0 to 250
            request("flush", 250, 900),  # neither a read nor a write
            request("read", 900, 1000, length=131072),
        ])
    )  # fmt: skip
    assert result["busy_s"] == pytest.approx(350e-6)
    assert result["bandwidth_mib_s"] == pytest.approx(0.25 / 350e-6)
    assert result["access_time_us"] == pytest.approx(400 / 3)
    assert result["score"] == pytest.approx(math.sqrt(0.25 / 350e-6 * 1e6 / (400 / 3)))
    assert (result["read_access_time_us"], result["write_access_time_us"]) == (100.0, 200.0)
    assert result["latency_us"]["max"] == 200.0
    assert result["latency_us"]["p50"] == 100.0
    assert result["latency_us"]["p90"] is None


def test_response_time_shows_a_stall_that_access_time_hides() -> None:
    """100 requests a second for 100 s, one at a time, each served in 200 us; the drive stalls once, for 0.5 s."""
    free_us, rows = 0.0, []
    for number in range(10_000):
        due = 10_000.0 * number
        issue = max(due, free_us)
        free_us = issue + (500_200.0 if number == 5000 else 200.0)
        rows.append(request("read", issue, free_us, due=due))
    requests = replayed(rows)

    answered = response(requests)

    assert service(requests)["latency_us"]["p999"] == 200.0
    assert answered is not None
    assert answered["p999"] == pytest.approx(402_200)
    assert answered["p50"] == 200.0


def test_response_time_is_of_reads_and_writes_that_were_due_and_completed() -> None:
    rows = [request("read", 30, 100, due=10), request("flush", 0, 900), request("write", 0, None),
            request("read", 0, 70, due=None), request("read", 0, 80, error=5)]  # fmt: skip

    answered = response(replayed(rows))

    assert answered is not None
    assert (answered["mean"], answered["max"]) == (90.0, 90.0)
    assert response(replayed(rows[1:])) is None


def test_the_score_is_the_geometric_mean_of_bandwidth_and_access_rate() -> None:
    assert score(100.0, 10_000.0) == pytest.approx(100.0)
    assert score(400.0, 100.0) == pytest.approx(2000.0)
    assert score(None, 1.0) is score(1.0, None) is score(0.0, 1.0) is score(1.0, 0.0) is None


def test_failed_requests_kept_the_drive_busy_but_moved_nothing() -> None:
    rows = [request("read", 0, 100), request("read", 1000, 9000, error=5), request("read", 9000, None)]
    result = service(replayed(rows))
    assert result["busy_s"] == pytest.approx(8100e-6)
    assert result["bandwidth_mib_s"] == pytest.approx(4096 / 2**20 / 8100e-6)
    assert result["access_time_us"] == 100.0


@pytest.mark.parametrize("rows", [[], [request("flush")], [request("read", None, None)], [request("read", 0, None)]])
def test_without_reads_and_writes_there_are_no_metrics(rows: list[dict[str, object]]) -> None:
    result = service(replayed(rows))
    assert result["busy_s"] is result["bandwidth_mib_s"] is result["access_time_us"] is result["score"] is None


def test_a_request_of_zero_duration_has_a_latency_and_no_bandwidth() -> None:
    result = service(replayed([request("write", 5, 5)]))
    assert (result["busy_s"], result["bandwidth_mib_s"], result["access_time_us"]) == (0.0, None, 0.0)
    assert result["score"] is None


def test_the_same_requests_are_compared_with_the_trace() -> None:
    result = compare_with_trace(
        replayed([
            request("read", 0, 100, trace_us=400), request("read", 0, 300, trace_us=200),
            request("read", 0, 10_000), request("read", 0, 9000, trace_us=1, error=5),
            request("flush", 0, 5000, trace_us=1),
        ])
    )  # fmt: skip
    assert result["requests"] == 2
    assert (result["replay_latency_us"]["mean"], result["trace_latency_us"]["mean"]) == (200.0, 300.0)
    assert result["access_time_ratio"] == pytest.approx(2 / 3)
    assert result["faster_pct"] == 50.0


def test_a_write_with_a_preflush_is_compared_from_the_issue_of_its_flush() -> None:
    rows = [request("flush", 10, 60, preflush=True), request("write", 60, 100, trace_us=80, after=0)]
    result = compare_with_trace(replayed(rows))
    assert (result["replay_latency_us"]["mean"], result["trace_latency_us"]["mean"]) == (90.0, 80.0)


def test_a_trace_without_completions_is_not_compared() -> None:
    result = compare_with_trace(replayed([request("read", 0, 100)]))
    assert (result["requests"], result["access_time_ratio"], result["faster_pct"]) == (0, None, None)
