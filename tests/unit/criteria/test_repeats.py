"""Repeats until they agree, and levels of repeated looks, which spend the error as said."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from drivelab.criteria.repeats import NextAction, look_level, median_of_odd, next_action, relative_standard_error_pct

AGREEING = [100.0, 101.0, 99.0]
SCATTERED = [100.0, 150.0, 60.0]


def test_the_formula_of_the_guide() -> None:
    values = [2440.0, 2398, 2475, 2410, 2462]  # =STDEV.S(range)/SQRT(COUNT(range))/AVERAGE(range)
    guide = statistics.stdev(values) / math.sqrt(len(values)) / statistics.mean(values)
    assert relative_standard_error_pct(values) == pytest.approx(100 * guide)


@given(st.lists(st.floats(1, 1e6), min_size=2, max_size=9), st.floats(1e-3, 1e3))
def test_the_relative_standard_error_does_not_depend_on_the_unit(values: list[float], factor: float) -> None:
    scaled = relative_standard_error_pct([factor * value for value in values])
    assert scaled == pytest.approx(relative_standard_error_pct(values), abs=1e-6)


def test_the_relative_standard_error_is_positive_for_a_negative_mean() -> None:
    assert relative_standard_error_pct([-99, -101]) == pytest.approx(1.0)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, math.nan], [1.0, math.inf], [1.0, -1.0]])
def test_values_without_a_relative_standard_error_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="relative standard error"):
        relative_standard_error_pct(values)


def test_the_median_is_a_measured_value() -> None:
    assert median_of_odd([2970, 3085, 2440]) == 2970
    assert median_of_odd([5, 1, 4, 2, 3]) == 3


@pytest.mark.parametrize("count", [0, 1, 2, 4, 6])
def test_no_median_of_few_or_an_even_number(count: int) -> None:
    with pytest.raises(ValueError, match=f"not {count}"):
        median_of_odd([1.0] * count)


def test_a_relative_standard_error_equal_to_the_threshold_is_enough() -> None:
    values = [100.0, 106.0, 100.0]
    threshold = relative_standard_error_pct(values)
    assert next_action(values, threshold).enough
    assert next_action(values, threshold * 0.99) == NextAction("more", 5)


def test_more_than_seven_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 7"):
        next_action([1.0] * 8)


@pytest.mark.parametrize(("least", "most"), [(3, 4), (3, 9), (5, 20)])
def test_looks_together_spend_the_error_as_planned(least: int, most: int) -> None:
    sums = np.random.default_rng(most).normal(size=(400_000, most)).cumsum(axis=1)
    crossed = np.zeros(len(sums), dtype=bool)
    for runs in range(least, most + 1):
        limit = stats.norm.isf(look_level(0.05, least, most, runs) / 2)
        crossed |= np.abs(sums[:, runs - 1]) / np.sqrt(runs) > limit
        assert crossed.mean() == pytest.approx(0.05 * (runs / most) ** 2, abs=0.0012)


def test_a_single_look_has_the_whole_level_and_later_looks_more_than_earlier() -> None:
    assert look_level(0.05, 9, 9, 9) == pytest.approx(0.05)
    levels = [look_level(0.05, 3, 9, runs) for runs in range(3, 10)]
    assert levels == sorted(levels)
    assert levels[0] == pytest.approx(0.05 / 9)


@pytest.mark.parametrize("runs", [2, 10])
def test_a_look_outside_the_plan_has_no_level(runs: int) -> None:
    with pytest.raises(ValueError, match="no level"):
        look_level(0.05, 3, 9, runs)
