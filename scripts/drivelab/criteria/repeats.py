"""Evaluate repeated runs: agreement, number needed, value to report, and the error of looking again and again.

Solidigm Performance Evaluation Guide (August 2022), sections 4.1 and 4.2: report the median of an odd number of warm
runs, at least three. If the relative standard error is above 5 %, do more runs. If more than seven are needed, discard
the set or study the cause.

A study that adds runs until its tests are decided looks at the same data again and again, and chance has a turn at
every look. Each look therefore may spend only a part of the error: after n of at most m runs, (n / m)^2 of it is spent
(Kim and DeMets, Biometrika 74, 1987). The level of a look follows from what was spent before by the joint distribution
of the looks (Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969), for sums of normal
steps. It is applied to p-values of t-tests (Jennison and Turnbull, Group Sequential Methods, 2000, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Literal

FEWEST = 3
MOST = 7
THRESHOLD_PCT = 5.0


@dataclass(frozen=True)
class NextAction:
    """What to do after some runs."""

    action: Literal["enough", "more", "discard"]
    runs: int
    """Total number of runs that the set needs; above the present number only for `more`."""

    @property
    def enough(self) -> bool:
        return self.action == "enough"


def relative_standard_error_pct(values: Sequence[float]) -> float:
    """Return |s / (mean * sqrt(N))| in percent; s is the sample deviation (N - 1).

    Raises ValueError for fewer than two values, for values that are not finite and for a mean of zero.
    """
    count = len(values)
    if count < 2:
        raise ValueError("a relative standard error needs at least two values")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a relative standard error needs finite values")
    mean = math.fsum(values) / count
    if mean == 0:
        raise ValueError("a mean of zero has no relative standard error")
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return 100 * abs(deviation / (mean * math.sqrt(count)))


def median_of_odd(values: Sequence[float]) -> float:
    """Return the middle of an odd number of values, which is a measured value.

    Raises ValueError for fewer than three values or an even number.
    """
    if len(values) < FEWEST or len(values) % 2 == 0:
        raise ValueError(f"a median needs an odd number of runs, at least {FEWEST}, not {len(values)}")
    return sorted(values)[len(values) // 2]


def next_action(values: Sequence[float], threshold_pct: float = THRESHOLD_PCT) -> NextAction:
    """Return what to do after the warm runs in `values`.

    A set has three, then five, then seven runs until they agree; after that it is discarded. Runs agree if the relative
    standard error is at most the threshold. Raises ValueError for more than seven runs.
    """
    count = len(values)
    if count > MOST:
        raise ValueError(f"there are {count} runs; a set has at most {MOST}")
    if count < FEWEST or count % 2 == 0:
        return NextAction("more", max(count + 1, FEWEST))
    if relative_standard_error_pct(values) <= threshold_pct:
        return NextAction("enough", count)
    return NextAction("discard", count) if count == MOST else NextAction("more", count + 2)


_NORMAL = NormalDist()
_POINTS = 81
"""Points of a numerical integral by Simpson's rule, an odd number; levels are right to six digits."""
_BISECTIONS = 60


@cache
def look_level(alpha: float, least: int, most: int, runs: int) -> float:
    """Return the level of two-sided tests after `runs` runs, if the first look comes after `least`, then one each run.

    A test that is judged at these levels until it is decided, at the last after `most` runs, has the level `alpha`.
    Raises ValueError unless 0 < alpha < 1 and 1 <= least <= runs <= most.
    """
    if not (0 < alpha < 1 and 1 <= least <= runs <= most):
        raise ValueError(f"no level for alpha {alpha:g} after {runs} of {least} to {most} runs")
    sums, masses = [0.0], [1.0]  # distribution of the sum of all steps, if no look has ended the test
    counted, spent, limit = 0, 0.0, math.inf
    for count in range(least, runs + 1):
        spread = math.sqrt(count - counted)
        share = alpha * (count / most) ** 2 - spent
        spent += share
        limit = _limit(lambda bound: _beyond(bound, sums, masses, spread) - share)  # noqa: B023 - used at once
        sums, masses = _within(limit, sums, masses, spread)
        counted = count
    return 2 * _NORMAL.cdf(-limit / math.sqrt(runs))


def _beyond(bound: float, sums: list[float], masses: list[float], spread: float) -> float:
    """Return the probability that a sum goes beyond a bound of either sign with the next step."""
    return sum(
        mass * (_NORMAL.cdf((-bound - at) / spread) + _NORMAL.cdf((at - bound) / spread))
        for at, mass in zip(sums, masses, strict=True)
    )


def _within(bound: float, sums: list[float], masses: list[float], spread: float) -> tuple[list[float], list[float]]:
    """Return the distribution after the next step of the sums within a bound: points, and their probabilities."""
    step = 2 * bound / (_POINTS - 1)
    points = [-bound + step * place for place in range(_POINTS)]
    weights = [step / 3 * (1 if place in (0, _POINTS - 1) else 4 if place % 2 else 2) for place in range(_POINTS)]
    density = NormalDist(0, spread).pdf
    return points, [
        weight * sum(mass * density(point - at) for at, mass in zip(sums, masses, strict=True))
        for point, weight in zip(points, weights, strict=True)
    ]


def _limit(excess: Callable[[float], float]) -> float:
    """Return where a falling function is zero, by bisection."""
    low, high = 0.0, 1.0
    while excess(high) > 0:
        high *= 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high
