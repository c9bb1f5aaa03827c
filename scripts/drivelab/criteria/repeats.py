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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
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


_POINTS = 81
"""Points of a numerical integral by Simpson's rule, an odd number; levels are right to six digits."""


@cache
def look_level(alpha: float, least: int, most: int, runs: int) -> float:
    """Return the level of two-sided tests after `runs` runs, if the first look comes after `least`, then one each run.

    A test that is judged at these levels until it is decided, at the last after `most` runs, has the level `alpha`.
    Raises ValueError unless 0 < alpha < 1 and 1 <= least <= runs <= most.
    """
    import numpy as np  # slow to import
    from scipy.optimize import brentq
    from scipy.special import ndtr

    if not (0 < alpha < 1 and 1 <= least <= runs <= most):
        raise ValueError(f"no level for alpha {alpha:g} after {runs} of {least} to {most} runs")
    weights = np.r_[1, np.tile([4, 2], _POINTS // 2)[:-1], 1] / 3
    sums, masses = np.zeros(1), np.ones(1)  # distribution of the sum of all steps, if no look has ended the test
    spent = limit = 0.0
    for count in range(least, runs + 1):
        spread = math.sqrt(count if count == least else 1)
        share = alpha * (count / most) ** 2 - spent
        spent += share

        def excess(bound: float) -> float:
            """Return how much more than the share goes beyond a bound of either sign with the next step."""
            beyond = ndtr((-bound - sums) / spread) + ndtr((sums - bound) / spread)  # noqa: B023 - used at once
            return float(masses @ beyond) - share  # noqa: B023

        limit = brentq(excess, 0.0, 40 * math.sqrt(count))
        points, step = np.linspace(-limit, limit, _POINTS, retstep=True)
        density = np.exp(-(((points[:, None] - sums) / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
        sums, masses = points, step * weights * (density @ masses)
    return 2 * float(ndtr(-limit / math.sqrt(runs)))
