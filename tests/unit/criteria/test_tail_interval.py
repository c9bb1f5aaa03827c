"""The interval of a high percentile: coverage by simulation, with independent requests and in a queue."""

from __future__ import annotations

import math

import numpy as np
import pytest

from drivelab.criteria.tail_interval import Floats, counted, fewest_requests, tail_interval

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
