from __future__ import annotations

import itertools
import statistics

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from drivelab.analysis.values.spread import MEAN, MEDIAN, interval, resamples, with_spread

values = st.floats(1.0, 1e6)


def by_hand(samples: list[float], centre: str) -> tuple[float, float]:
    """Return the interval from all ordered resamples, which are equally probable."""
    of = statistics.fmean if centre == MEAN else statistics.median
    result = sorted(of(resample) for resample in itertools.product(samples, repeat=len(samples)))
    return tuple(result[int(np.ceil(level * len(result) - 1e-9)) - 1] for level in (0.025, 0.975))  # type: ignore[return-value]


@settings(max_examples=25, deadline=None)
@given(st.lists(values, min_size=3, max_size=5), st.sampled_from([MEAN, MEDIAN]))
def test_all_resamples_are_enumerated(samples: list[float], centre: str) -> None:
    low, high = interval(np.array([samples]), centre)
    assert (low[0], high[0]) == pytest.approx(by_hand(samples, centre))


@pytest.mark.parametrize(("count", "centre"), [(5, MEAN), (7, MEAN), (6, MEDIAN), (7, MEDIAN), (12, MEAN), (9, MEDIAN)])
def test_enumeration_equals_the_limit_of_drawing(count: int, centre: str) -> None:
    samples = np.random.default_rng(2).lognormal(3, 0.2, size=(20, count))
    low, high = interval(samples, centre)
    drawn = stats.bootstrap((samples,), np.mean if centre == MEAN else np.median, axis=1, method="percentile",
                            n_resamples=20_000, rng=np.random.default_rng(9)).confidence_interval  # fmt: skip
    width = (drawn.high - drawn.low).mean()
    assert np.abs(low - drawn.low).mean() < 0.05 * width
    assert np.abs(high - drawn.high).mean() < 0.05 * width


def test_intervals_of_many_samples_do_not_depend_on_other_rows() -> None:
    samples = np.random.default_rng(2).lognormal(3, 0.2, size=(3, 25))
    together = interval(samples, MEAN)
    for row in range(3):
        alone = interval(samples[row : row + 1], MEAN)
        assert (alone[0][0], alone[1][0]) == pytest.approx((together[0][row], together[1][row]), rel=1e-12)


@pytest.mark.parametrize("count", [3, 4, 5, 7, 11])
@pytest.mark.parametrize("centre", [MEAN, MEDIAN])
def test_equal_samples_have_an_interval_without_width(count: int, centre: str) -> None:
    low, high = interval(np.full((1, count), 0.1), centre)
    assert (low[0], high[0]) == (0.1, 0.1)


def test_the_probabilities_of_resamples_add_up() -> None:
    for count, many in ((3, 10), (5, 126), (7, 1716)):
        counts, probabilities = resamples(count)
        assert len(counts) == many
        assert (counts.sum(axis=1) == count).all()
        assert probabilities.sum() == pytest.approx(1)


def test_coverage_of_the_true_mean() -> None:
    """Module and documentation say: with five samples, in about 5 of 6 cases."""
    samples = np.random.default_rng(4).normal(100, 5, size=(4000, 5))
    low, high = interval(samples, MEAN)
    assert ((low <= 100) & (high >= 100)).mean() == pytest.approx(0.83, abs=0.02)


def test_rows_of_several_lengths_and_kinds() -> None:
    rows = pd.DataFrame({
        "samples": [[1.0, 2.0, 4.0], [5.0, 6.0], [1.0, 2.0, 3.0], [10.0, 20.0, 40.0]],
        "centre": [MEDIAN, MEAN, None, MEDIAN],
        "interval_low": [None, None, 1.5, None],
        "interval_high": [None, None, 2.5, None],
    })  # fmt: skip
    result = with_spread(rows)
    assert result["mad"].tolist() == pytest.approx([1, np.nan, 1, 10], nan_ok=True)
    assert result["interval_low"].tolist() == pytest.approx([1, np.nan, 1.5, 10], nan_ok=True)
    assert result["interval_high"].tolist() == pytest.approx([4, np.nan, 2.5, 40], nan_ok=True)
