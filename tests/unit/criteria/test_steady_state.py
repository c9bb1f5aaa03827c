"""Steady state by the standard's rule, and how far a window may be from what a drive settles at."""

from __future__ import annotations

import csv
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from drivelab.criteria.settling import to_asymptote
from drivelab.criteria.steady_state import determine, find_window, is_steady

GOLDEN = Path(__file__).parents[2] / "golden/tkperf_dc_s4600_steady_state.csv"
CRITERION = {"window": 5, "data_excursion": 0.2, "slope_excursion": 0.1}
windows = st.lists(st.floats(1e-3, 1e6), min_size=5, max_size=5)


def golden() -> list[dict[str, str]]:
    with GOLDEN.open(newline="") as file:
        return list(csv.DictReader(file))


def drifting(share: float, rounds: int = 5) -> list[float]:
    """Return noise-free values that rise by `share` of their average from first to last."""
    return [100 * (1 + share * (i / (rounds - 1) - 0.5)) for i in range(rounds)]


@pytest.mark.parametrize("row", golden(), ids=lambda row: row["test"])
def test_printed_windows_of_tkperf(row: dict[str, str]) -> None:
    values = [float(row[f"v{i}"]) for i in range(1, 6)]
    first = int(row["round_labels"].split()[0])
    result = determine(values, first_round=first)
    printed = row["average_printed"]
    decimals = len(printed.partition(".")[2])
    assert result.steady
    assert result.average == pytest.approx(float(printed), abs=0.5 * 10**-decimals + 1e-9)
    slope, intercept = np.polyfit(range(first, first + 5), values, 1)
    assert result.slope == pytest.approx(slope)
    assert result.intercept == pytest.approx(intercept)
    assert result.allowed_data_excursion == pytest.approx(0.2 * result.average)
    assert result.allowed_slope_excursion == pytest.approx(0.1 * result.average)
    assert result.measured_data_excursion == max(values) - min(values)
    assert result.measured_slope_excursion == pytest.approx(4 * abs(slope))


@pytest.mark.parametrize(
    ("share", "steady"), [(0.08, True), (-0.08, True), (0.0999, True), (0.101, False), (0.12, False), (-0.12, False)]
)
def test_noise_free_drift(share: float, steady: bool) -> None:
    """A slope not multiplied by the number of intervals would accept every drift below 40 %."""
    result = determine(drifting(share))
    assert result.steady is steady
    assert result.residual_drift_pct == pytest.approx(100 * share)
    assert result.measured_slope_excursion == pytest.approx(abs(share) * result.average)


def test_the_slope_spans_one_interval_fewer_than_rounds() -> None:
    assert determine([1, 2, 3], window=3).measured_slope_excursion == pytest.approx(2)
    assert determine(range(1, 11), window=10).measured_slope_excursion == pytest.approx(9)


def test_values_at_the_limits_are_steady() -> None:
    assert determine([90, 110, 100, 110, 90]).steady  # a range of 20 %, no slope
    assert not determine([90, 110.1, 100, 110.1, 90]).steady
    assert determine(drifting(0.10)).steady
    scaled = [0.1 * value for value in (90, 110, 100, 110, 90)]  # the same, where floats round
    assert determine(scaled).steady


def test_range_and_slope_are_judged_separately() -> None:
    spiky = determine([100, 100, 130, 100, 100])
    assert spiky.slope == pytest.approx(0)
    assert not spiky.steady


def test_only_the_last_rounds_count() -> None:
    result = determine([1000, 500, 100, 101, 99, 100, 100])
    assert result.steady
    assert result.average == 100
    assert result.intercept + result.slope * 5 == pytest.approx(100)  # the window is rounds 3 to 7


def test_fewer_rounds_than_the_window_are_not_steady() -> None:
    result = determine([100, 100, 100, 100])
    assert not result.steady
    assert result.average == 100
    alone = determine([42.0])
    assert (alone.steady, alone.slope, alone.intercept, alone.measured_data_excursion) == (False, 0, 42, 0)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_an_invalid_value_is_refused_with_its_round(bad: float) -> None:
    with pytest.raises(ValueError, match="round 2"):
        determine([100, bad, 100, 100, 100, 100, 100])


def test_no_values_and_a_window_without_slope_are_refused() -> None:
    with pytest.raises(ValueError, match="no values"):
        determine([])
    with pytest.raises(ValueError, match="window of 1"):
        determine([1, 2], window=1)


@given(windows, st.floats(1e-3, 1e3))
def test_the_unit_does_not_matter(values: list[float], factor: float) -> None:
    first, other = determine(values), determine([factor * value for value in values])
    limits = (
        (first.measured_data_excursion, first.allowed_data_excursion),
        (first.measured_slope_excursion, first.allowed_slope_excursion),
    )
    assume(all(not math.isclose(measured, allowed, rel_tol=1e-6) for measured, allowed in limits))
    assert first.steady == other.steady
    assert other.residual_drift_pct == pytest.approx(first.residual_drift_pct, abs=1e-6)
    assert other.average == pytest.approx(factor * first.average)


@given(windows, st.integers(-100, 100))
def test_the_first_round_number_moves_only_the_intercept(values: list[float], first: int) -> None:
    plain, shifted = determine(values), determine(values, first_round=first)
    assert shifted.intercept == pytest.approx(plain.intercept - plain.slope * (first - 1), abs=1e-6 * max(values))
    same = {name: value for name, value in vars(plain).items() if name != "intercept"}
    assert same == {name: value for name, value in vars(shifted).items() if name != "intercept"}


@given(windows)
def test_excursions_are_not_negative_and_the_slope_is_within_the_range(values: list[float]) -> None:
    result = determine(values)
    assert result.measured_data_excursion >= 0
    assert result.measured_slope_excursion >= 0
    # the line cannot rise by more than 1.2 times the range of five values (attained by -1 -1 0 1 1)
    assert result.measured_slope_excursion <= 1.2 * result.measured_data_excursion * (1 + 1e-9) + 1e-9


@given(windows, st.randoms(use_true_random=False))
def test_the_order_of_rounds_changes_only_the_slope(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    first, other = determine(values), determine(shuffled)
    assert other.average == first.average
    assert other.measured_data_excursion == first.measured_data_excursion
    back = determine(values[::-1])
    assert back.slope == pytest.approx(-first.slope, abs=1e-9 * max(values))


@given(st.lists(st.floats(1e-3, 1e6), min_size=2, max_size=30))
def test_the_fit_is_the_least_squares_line(values: list[float]) -> None:
    result = determine(values, window=len(values))
    slope, intercept = np.polyfit(range(1, len(values) + 1), values, 1)
    assert result.slope == pytest.approx(slope, abs=1e-7 * max(values))
    assert result.intercept == pytest.approx(intercept, abs=1e-6 * max(values))


SETTLING = [200.0, 150, 120, 101, 100, 100, 100, 100, 100]


def test_the_window_is_the_first_in_which_all_are_steady() -> None:
    result = find_window({"a": SETTLING, "b": [10.0] * 9}, CRITERION)
    assert (result.reached, result.first_round, result.last_round) == (True, 4, 8)
    assert result.states["a"].average == pytest.approx(100.2)
    late = [10.0] * 4 + [30.0, 30, 30, 30, 30]
    result = find_window({"a": SETTLING, "b": late}, CRITERION)
    assert (result.reached, result.first_round, result.last_round) == (True, 5, 9)


def test_variables_must_be_steady_in_the_same_window() -> None:
    early = [10.0] * 5 + [20.0, 30, 40, 50, 60]
    late = [60.0, 50, 40, 30, 20] + [10.0] * 5
    result = find_window({"a": early, "b": late}, CRITERION)
    assert (result.reached, result.first_round, result.last_round) == (False, 6, 10)
    assert result.states["b"].steady
    assert not result.states["a"].steady


def test_without_steady_state_the_last_rounds_are_reported() -> None:
    values = [100.0 * 1.2**i for i in range(25)]
    result = find_window({"a": values}, CRITERION)
    assert (result.reached, result.first_round, result.last_round) == (False, 21, 25)
    short = find_window({"a": [1.0, 1.0]}, CRITERION)
    assert (short.reached, short.first_round, short.last_round) == (False, 1, 2)


def test_the_window_lies_wholly_after_an_interruption() -> None:
    steady = {"a": [100.0] * 9}
    assert find_window(steady, CRITERION).last_round == 5
    result = find_window(steady, CRITERION, not_before=4)
    assert (result.reached, result.first_round, result.last_round) == (True, 4, 8)
    result = find_window(steady, CRITERION, not_before=6)
    assert (result.reached, result.first_round, result.last_round) == (False, 5, 9)


@given(st.lists(st.floats(90, 130), min_size=1, max_size=25), st.integers(1, 10))
def test_checking_after_every_round_finds_the_same_window(values: list[float], not_before: int) -> None:
    stopped = next((n for n in range(1, len(values) + 1) if is_steady({"a": values[:n]}, CRITERION, not_before)), None)
    result = find_window({"a": values}, CRITERION, not_before)
    assert result.reached == (stopped is not None)
    assert result.last_round == (stopped or len(values))


def test_variables_must_have_the_same_rounds() -> None:
    with pytest.raises(ValueError, match="same number of rounds"):
        is_steady({"a": [1.0] * 5, "b": [1.0] * 6}, CRITERION)


def test_steady_state_does_not_import_pandas() -> None:
    code = (
        "import sys, drivelab.criteria.steady_state; sys.exit(bool({'pandas', 'numpy', 'pyarrow'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _decay(time_constant: float, rounds: int = 60) -> np.ndarray:
    return 100 * (1 + 2 * np.exp(-np.arange(rounds) / time_constant))


@pytest.mark.parametrize(("time_constant", "above_pct"), [(3, 8), (6, 17), (10, 33)])
def test_slow_decays_are_accepted_far_above_their_asymptote_and_the_fit_says_so(
    time_constant: float, above_pct: float
) -> None:
    decay = _decay(time_constant)
    rounds = next(count for count in range(5, 60) if determine(decay[:count].tolist()).steady)
    above = float(np.log(decay[rounds - 5 : rounds].mean() / 100))

    fitted = to_asymptote(decay[None, :rounds], 5)

    assert 100 * np.expm1(above) == pytest.approx(above_pct, abs=2)
    assert float(fitted[0]) == pytest.approx(-above, rel=0.1)


def test_steady_rounds_have_no_asymptote_but_their_average() -> None:
    rounds = np.exp(np.random.default_rng(0).normal(0, 0.03, (2000, 8)))

    false_alarms = np.mean(to_asymptote(rounds, 5) != 0)

    assert false_alarms < 0.03
    assert to_asymptote(np.full((1, 8), 7.0), 5) == 0
    assert to_asymptote(rounds[:3, :4], 4).tolist() == [0, 0, 0]


def test_a_rise_without_an_end_has_no_asymptote_below_zero() -> None:
    steep = np.array([[1000.0, 600, 300, 90, 20, 3]])

    assert np.isfinite(to_asymptote(steep, 5)).all()


def test_a_time_settles_as_its_rate_does() -> None:
    rates = _decay(3)[None, :13]

    assert to_asymptote(1 / rates, 5, of_times=True) == pytest.approx(-to_asymptote(rates, 5))
