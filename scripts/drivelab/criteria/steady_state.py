"""Determine steady state by the definition of the SNIA PTS.

PTS: Solid State Storage Performance Test Specification.
Within a window of rounds (five in the specification), for every tracked variable: the largest value minus the smallest
is at most 20 % of their average, and the least-squares line rises or falls by at most 10 % of the average from the
first round of the window to the last.

This module has no slow imports, because measuring processes use it after every round.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

WINDOW = 5
DATA_EXCURSION = 0.20
SLOPE_EXCURSION = 0.10

_ROUNDING = 1e-9
"""Relative tolerance of the limits, so that exactly 20 % passes despite rounding."""


@dataclass(frozen=True)
class SteadyState:
    """The determination for one variable. Excursions, average and intercept are in the unit of the values."""

    average: float
    allowed_data_excursion: float
    measured_data_excursion: float
    allowed_slope_excursion: float
    measured_slope_excursion: float
    slope: float
    """Slope of the fit `slope * round + intercept`, per round."""
    intercept: float
    steady: bool
    residual_drift_pct: float
    """Rise of the fit over the window in percent of the average, negative for a fall. A steady window may hide up to
    10 %: the rule passes every noise-free drift of 8 %."""


@dataclass(frozen=True)
class Window:
    """The rounds that give the result of a measurement."""

    first_round: int
    last_round: int
    reached: bool
    """Whether all variables are steady in the window; if not, it has the last rounds."""
    states: Mapping[str, SteadyState]
    """The determination for each variable over these rounds."""


def determine(
    values: Sequence[float],
    *,
    window: int = WINDOW,
    data_excursion: float = DATA_EXCURSION,
    slope_excursion: float = SLOPE_EXCURSION,
    first_round: int = 1,
) -> SteadyState:
    """Determine whether the last `window` values, one per round, are steady.

    `first_round` is the round number of `values[0]`; excursions are fractions of the average. Fewer values than
    `window` are not steady; the numbers then describe the existing rounds (a single round has no slope). Raises
    ValueError for no values and for a value that is not a positive finite number.
    """
    if window < 2:
        raise ValueError(f"a window of {window} has no slope; use at least 2 rounds")
    if not values:
        raise ValueError("there are no values")
    for number, value in enumerate(values, first_round):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"round {number} has the value {value:g}; values must be positive numbers")
    last = values[-window:]
    intervals = len(last) - 1  # n rounds span n - 1 intervals
    average = math.fsum(last) / len(last)
    slope = _slope(last, average)
    middle = first_round + len(values) - 1 - intervals / 2
    measured_data = max(last) - min(last)
    measured_slope = abs(slope) * intervals
    return SteadyState(
        average=average,
        allowed_data_excursion=data_excursion * average,
        measured_data_excursion=measured_data,
        allowed_slope_excursion=slope_excursion * average,
        measured_slope_excursion=measured_slope,
        slope=slope,
        intercept=average - slope * middle,
        steady=len(last) == window
        and _within(measured_data, data_excursion * average)
        and _within(measured_slope, slope_excursion * average),
        residual_drift_pct=100 * slope * intervals / average,
    )


def is_steady(history: Mapping[str, Sequence[float]], criterion: Mapping[str, Any], not_before: int = 1) -> bool:
    """Say whether every variable is steady over the last window.

    The window must begin at round `not_before` or later.
    `history` has a value for each round from 1; `criterion` has `window`, `data_excursion` and `slope_excursion`, as in
    a plan; `not_before` is the first round after an interruption. Raises ValueError as `determine` does, and if the
    variables have different numbers of rounds.
    """
    rounds = _rounds(history)
    if rounds < criterion["window"] or rounds - criterion["window"] + 1 < not_before:
        return False
    return all(_determine(values, criterion).steady for values in history.values())


def find_window(
    values_by_variable: Mapping[str, Sequence[float]], criterion: Mapping[str, Any], not_before: int = 1
) -> Window:
    """Return the first window in which all variables are steady.

    Without one, return the last window, marked as not reached.
    Arguments and errors: see `is_steady`.
    """
    rounds = _rounds(values_by_variable)
    reached, last_round = False, rounds
    for end in range(1, rounds + 1):
        so_far = {name: values[:end] for name, values in values_by_variable.items()}
        if is_steady(so_far, criterion, not_before):
            reached, last_round = True, end
            break
    states = {name: _determine(values[:last_round], criterion) for name, values in values_by_variable.items()}
    return Window(max(last_round - criterion["window"] + 1, 1), last_round, reached, states)


def _determine(values: Sequence[float], criterion: Mapping[str, Any]) -> SteadyState:
    return determine(values, **{name: criterion[name] for name in ("window", "data_excursion", "slope_excursion")})


def _rounds(history: Mapping[str, Sequence[float]]) -> int:
    counts = {len(values) for values in history.values()}
    if len(counts) != 1:
        raise ValueError(f"variables must have the same number of rounds, not {sorted(counts)}")
    return counts.pop()


def _slope(values: Sequence[float], average: float) -> float:
    """Return the slope of the least-squares line through values at distances of 1."""
    middle = (len(values) - 1) / 2
    spread = math.fsum((i - middle) ** 2 for i in range(len(values)))
    return math.fsum((i - middle) * (y - average) for i, y in enumerate(values)) / spread if spread else 0.0


def _within(measured: float, allowed: float) -> bool:
    return measured <= allowed * (1 + _ROUNDING)
