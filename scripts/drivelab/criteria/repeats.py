"""Evaluate repeated runs: agreement, number needed, value to report.

Solidigm Performance Evaluation Guide (August 2022), sections 4.1 and 4.2: report the median of an odd number of warm
runs, at least three. If the relative standard error is above 5 %, do more runs. If more than seven are needed, discard
the set or study the cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
