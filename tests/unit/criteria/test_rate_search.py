"""The search for the highest rate within a limit, and intervals of high percentiles, by simulations of known truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.criteria.rate_search import (
    FAILS,
    HOST_LIMITED,
    PASSES,
    UNDECIDED,
    Answer,
    Search,
    answer,
    judge,
    judge_with_host,
    next_rate,
)
from drivelab.criteria.tail_interval import Floats, TailInterval, counted, fewest_requests, tail_interval

SEARCH = Search(start_iops=100, factor=2, resolution=0.02, most_iops=1e6, least_iops=1)


def searched(search: Search, outcome: Callable[[float], str]) -> list[tuple[float, str]]:
    """Return all rates of a search in order, with the outcomes of a simulated drive."""
    rates: list[tuple[float, str]] = []
    while (iops := next_rate(search, rates)) is not None:
        rates.append((iops, outcome(iops)))
    return rates


def steep(capacity: float) -> Callable[[float], str]:
    return lambda iops: PASSES if iops < capacity else FAILS


@given(st.floats(2, 9e5))
def test_the_answer_encloses_the_truth_within_the_resolution(capacity: float) -> None:
    rates = searched(SEARCH, steep(capacity))
    found = answer(rates)
    assert found.passing_iops is not None
    assert found.failing_iops is not None
    assert found.passing_iops < capacity <= found.failing_iops
    assert found.failing_iops / found.passing_iops < 1.02 + 1e-3  # rates have four digits
    assert len(rates) < 30
    assert len({iops for iops, _ in rates}) == len(rates)


def test_rates_rise_then_halve_the_distance() -> None:
    rates = [iops for iops, _ in searched(replace(SEARCH, resolution=0.2), steep(1000))]
    assert rates == [100, 200, 400, 800, 1600, 1131, 951.2]


def test_rates_fall_if_the_first_fails() -> None:
    rates = [iops for iops, _ in searched(replace(SEARCH, resolution=0.5), steep(20))]
    assert rates == [100, 50, 25, 12.5, 17.68]


@given(st.floats(10, 9e5), st.floats(1.0, 4.0))
def test_undecided_rates_stay_between_pass_and_fail(low: float, width: float) -> None:
    """Both ends are found within the resolution, if there is an undecided rate between them."""
    high = low * width
    rates = searched(SEARCH, lambda iops: PASSES if iops < low else FAILS if iops >= high else UNDECIDED)
    found = answer(rates)
    assert found.passing_iops is not None
    assert found.passing_iops < low
    assert all(low <= iops < high for iops in found.undecided)
    if high < SEARCH.most_iops:
        assert found.failing_iops is not None
        assert found.failing_iops >= high
        if found.undecided:
            assert found.undecided[0] / found.passing_iops < 1.021
            assert found.failing_iops / found.undecided[-1] < 1.021


def test_a_search_ends_at_the_highest_rate() -> None:
    rates = searched(replace(SEARCH, most_iops=1500), steep(math.inf))
    assert [iops for iops, _ in rates] == [100, 200, 400, 800, 1500]
    assert answer(rates) == Answer(1500, None, (), False)


def test_a_search_ends_where_no_rate_can_pass() -> None:
    rates = searched(replace(SEARCH, least_iops=30), steep(0))
    assert [iops for iops, _ in rates] == [100, 50]
    assert answer(rates) == Answer(None, 50, (), False)


def test_a_search_begins_where_the_requests_are_enough() -> None:
    assert next_rate(replace(SEARCH, least_iops=4000), []) == 4000


def test_a_host_that_is_too_slow_bounds_the_search() -> None:
    rates = searched(replace(SEARCH, resolution=0.1), lambda iops: PASSES if iops < 1000 else HOST_LIMITED)
    found = answer(rates)
    assert found.passing_iops == pytest.approx(1000, rel=0.1)
    assert found.failing_iops is None
    assert found.host_limited
    assert max(iops for iops, _ in rates) == 1600


def interval(low: float, high: float) -> TailInterval:
    return TailInterval((low + min(high, 2 * low)) / 2, low, high, 1000, 1.0)


def test_only_a_whole_interval_decides() -> None:
    assert judge(interval(0.5, 0.9), 1.0) == PASSES
    assert judge(interval(1.1, math.inf), 1.0) == FAILS
    assert judge(interval(0.5, math.inf), 1.0) == UNDECIDED
    assert judge(interval(0.9, 1.1), 1.0) == UNDECIDED
    assert judge(interval(0.9, 1.0), 1.0) == UNDECIDED


def test_a_rate_that_only_the_host_fails_is_host_limited() -> None:
    assert judge_with_host(interval(2, 3), interval(0.5, 0.9), 1.0) == HOST_LIMITED
    assert judge_with_host(interval(2, 3), interval(0.9, 1.1), 1.0) == HOST_LIMITED
    assert judge_with_host(interval(2, 3), interval(1.5, 2), 1.0) == FAILS
    assert judge_with_host(interval(0.5, 0.9), interval(0.4, 0.8), 1.0) == PASSES


RUNS = 300
WRONG = 0.025
"""Probability that an end of a 95 % interval is on the wrong side."""


def queue(rng: np.random.Generator, load: float, count: int) -> Floats:
    """Return the response times of a queue with random arrivals and one server that takes 1 us (Lindley)."""
    arrivals = np.cumsum(rng.exponential(1 / load, count))
    served = np.arange(count, dtype=float)
    return np.maximum.accumulate(arrivals - served) + served + 1 - arrivals


def test_an_interval_of_independent_requests_covers_the_truth() -> None:
    rng, truth = np.random.default_rng(1), math.log(100)
    intervals = [tail_interval([rng.exponential(1, 20_000)], 99) for _ in range(RUNS)]
    assert np.mean([interval.low > truth for interval in intervals]) < 2 * WRONG
    assert np.mean([interval.high < truth for interval in intervals]) < 2 * WRONG
    assert np.median([interval.dispersion for interval in intervals]) < 2
    assert np.median([interval.high / interval.low for interval in intervals]) < 1.1


@pytest.mark.parametrize(("load", "count"), [(0.5, 20_000), (0.8, 50_000), (0.9, 100_000)])
def test_an_interval_of_requests_in_a_queue_covers_the_truth(load: float, count: int) -> None:
    """Binomial ranks alone, as for independent requests, are wrong in nine of ten runs at a load of 90 %."""
    rng = np.random.default_rng(2)
    truth = float(np.percentile(queue(rng, load, 10_000_000), 99))
    intervals = [tail_interval([counted(queue(rng, load, count))], 99) for _ in range(RUNS)]
    assert np.mean([interval.low > truth for interval in intervals]) < 2 * WRONG
    assert np.mean([interval.high < truth for interval in intervals]) < 2 * WRONG
    assert np.median([interval.dispersion for interval in intervals]) > 5


def test_several_measurements_narrow_an_interval() -> None:
    rng = np.random.default_rng(3)
    fours = [[counted(queue(rng, 0.5, 20_000)) for _ in range(4)] for _ in range(20)]
    one, four = ([tail_interval(parts[:count], 99) for parts in fours] for count in (1, 4))
    assert four[0].requests == 4 * one[0].requests
    widths = [np.median([interval.high - interval.low for interval in intervals]) for intervals in (one, four)]
    assert widths[1] < 0.7 * widths[0]


def test_too_few_requests_do_not_bound_a_percentile() -> None:
    rng = np.random.default_rng(4)
    few = fewest_requests(99)
    assert few == 368  # 0.99 ** 368 < 0.025
    assert tail_interval([rng.exponential(1, few // 2)], 99).high == math.inf
    assert tail_interval([rng.exponential(1, 4 * few)], 99).high < math.inf


def test_requests_that_were_never_served_lie_beyond_every_limit() -> None:
    response = np.r_[np.ones(9000), np.full(1000, math.inf)]
    interval = tail_interval([response], 99)
    assert (interval.value, interval.high) == (math.inf, math.inf)
    assert tail_interval([np.random.default_rng(5).permutation(response)], 50).high == 1


def test_equal_response_times_have_an_interval_without_width() -> None:
    interval = tail_interval([np.full(1000, 80.0)], 99)
    assert (interval.low, interval.value, interval.high) == (80, 80, 80)


def test_the_warm_up_does_not_count() -> None:
    assert counted(np.arange(10.0)).tolist() == list(range(1, 10))


def test_no_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="needs requests"):
        tail_interval([np.zeros(0)], 99)
