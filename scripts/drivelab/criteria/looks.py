"""Keep the error of a test that is repeated while its data grow.

A study that adds runs until its tests are decided looks at the same data again and again, and chance has a turn at
every look. Each look therefore may spend only a part of the error: after n of at most m runs, (n / m)^2 of it is spent
(Kim and DeMets, Biometrika 74, 1987). The level of a look follows from what was spent before by the joint distribution
of the looks (Armitage, McPherson and Rowe, Journal of the Royal Statistical Society A 132, 1969), for sums of normal
steps. It is applied to p-values of t-tests (Jennison and Turnbull, Group Sequential Methods, 2000, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from statistics import NormalDist

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
