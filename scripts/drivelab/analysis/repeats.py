"""Repeated runs: how well they agree, how many are needed, which value stands for them.

Solidigm Performance Evaluation Guide (August 2022), sections 4.1 and 4.2: report the median of an odd
number, three at the least, of warm runs; a relative standard error above 5 % asks for more runs; a set
that takes more than seven is to be discarded, or the cause to be studied.
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
    """Number of runs in all that the set is to have: more than there are only for `more`."""

    @property
    def enough(self) -> bool:
        return self.action == "enough"


def relative_standard_error_pct(values: Sequence[float]) -> float:
    """|s / (mean * sqrt(N))| in percent, with the standard deviation s of a sample (N - 1).

    Raises ValueError for fewer than two values, for values that are not finite and for a mean of zero.
    """
    count = len(values)
    if count < 2:
        raise ValueError("a relative standard error takes two values or more")
    if not all(math.isfinite(value) for value in values):
        raise ValueError("a relative standard error takes finite values only")
    mean = math.fsum(values) / count
    if mean == 0:
        raise ValueError("a mean of zero has no relative standard error")
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    return 100 * abs(deviation / (mean * math.sqrt(count)))


def median_of_odd(values: Sequence[float]) -> float:
    """The middle one of an odd number of values, which is a measured value; ValueError below three or if
    even."""
    if len(values) < FEWEST or len(values) % 2 == 0:
        raise ValueError(f"a median is taken of an odd number of runs, {FEWEST} or more, not of {len(values)}")
    return sorted(values)[len(values) // 2]


def next_action(values: Sequence[float], threshold_pct: float = THRESHOLD_PCT) -> NextAction:
    """After the warm runs in `values`: three, then five, then seven runs until they agree, else discard
    the set.

    A relative standard error of just the threshold is enough. Raises ValueError for more than seven runs.
    """
    count = len(values)
    if count > MOST:
        raise ValueError(f"there are {count} runs; a set ends at {MOST}")
    if count < FEWEST or count % 2 == 0:
        return NextAction("more", max(count + 1, FEWEST))
    if relative_standard_error_pct(values) <= threshold_pct:
        return NextAction("enough", count)
    return NextAction("discard", count) if count == MOST else NextAction("more", count + 2)
