"""Say which difference a number of recordings can show, and how many recordings a difference needs.

Both are for one comparison of two drives whose recordings scatter alike, by a two-sided t-test. A study adjusts its
tests for their number, which needs more recordings if most cells are equal. docs/method.md has the power of the whole
by simulation.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import stdtrit

from drivelab.analysis.deltas.recordings import Floats, Ratios, scatter_within
from drivelab.analysis.values.latency_values import NINES
from drivelab.criteria.repeats import FEWEST

POWER = 0.8
"""Probability of showing a difference that is there."""
FAINT = 0.1
"""Probability of a decision below which more recordings are not worth measuring (ours)."""
MOST_RECORDINGS = 50
"""Largest number of recordings a side that is worth planning."""
ASSUMED_SCATTER = 0.03
"""Standard deviation of the logarithm between recordings of a drive that is assumed before there are any: purged and
preconditioned drives repeat within 1 to 5 % (ours)."""


def detectable(scatter: float, recordings: int, alpha: float) -> float:
    """Return the smallest logarithm of a ratio that `recordings` a side show with probability POWER.

    `scatter` is the standard deviation of the logarithm between recordings, `alpha` one minus the confidence.
    """
    freedom = 2 * (recordings - 1)
    error = scatter * math.sqrt(2 / recordings)
    return float(_deviates(freedom, alpha, POWER) * error)


def recordings_for(scatter: float, difference: float, alpha: float) -> int | None:
    """Return how many recordings a side show a logarithm of a ratio, at least FEWEST; None for more than can be."""
    counts = range(FEWEST, MOST_RECORDINGS + 1)
    return next((count for count in counts if detectable(scatter, count, alpha) <= difference), None)


def scatter_of(summary: pd.DataFrame) -> float | None:
    """Return the standard deviation of the logarithm between recordings, pooled over the values of table `summary`.

    Percentiles, which scatter more than rates and means, do not count. None if no drive and measurement has two
    recordings.
    """
    of_recordings = summary[(summary["scope"] == "recordings") & ~summary["metric"].isin(NINES)]
    squares, freedom = scatter_within(of_recordings["samples"])
    return math.sqrt(squares / freedom) if freedom else None


def recordings_needed(ratios: Ratios, recordings: Floats, margin: float, alpha: float) -> Floats:
    """Return about how many recordings a side would decide each ratio, with probability POWER.

    `recordings` are those that the ratios have a side. A ratio is decided if its interval excludes zero or lies within
    the margin, whichever needs fewer. Infinite for more than MOST_RECORDINGS.
    """
    distance = np.maximum(np.abs(ratios.logs), margin - np.abs(ratios.logs)) - ratios.unsure
    needed = np.full(len(recordings), np.inf)
    for count in range(MOST_RECORDINGS, 1, -1):
        reached = _reach(ratios, recordings, count, alpha, POWER) <= distance
        needed = np.where(reached & (count > recordings), count, needed)
    return needed


def may_decide(ratios: Ratios, recordings: Floats, most: int, margin: float, alpha: float) -> npt.NDArray[np.bool_]:
    """Return whether `most` recordings a side would decide each ratio at the margin with a probability of FAINT.

    `recordings` are those that the ratios have a side. A ratio is decided at the margin if its interval lies wholly
    beyond or wholly within it.
    """
    distance = np.abs(np.abs(ratios.logs) - margin) - ratios.unsure
    return np.asarray(_reach(ratios, recordings, most, alpha, FAINT) <= distance)


def _reach(ratios: Ratios, recordings: Floats, count: int, alpha: float, power: float) -> Floats:
    """Return how far from a bound `count` recordings a side can tell ratios of `recordings` a side, as a logarithm."""
    # No more than Welch's, because cells help each other at three recordings only.
    freedom = np.clip(ratios.freedom * (count - 1) / np.maximum(recordings - 1, 1), 1.0, 2.0 * (count - 1))
    error = ratios.errors * np.sqrt(recordings / count)
    return np.asarray(_deviates(freedom, alpha, power) * error)


def _deviates(freedom: Floats | float, alpha: float, power: float) -> Floats:
    """Return how many standard errors a difference spans that a two-sided t-test shows with probability `power`."""
    # stats.t.isf is the same function, with checks that take 20 times as long
    return np.asarray(-stdtrit(freedom, alpha / 2) - stdtrit(freedom, 1 - power))
