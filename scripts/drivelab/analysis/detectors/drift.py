"""Drift: values that are to be repeats of each other, yet rise or fall throughout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from drivelab.analysis.detectors.courses import Floats
from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.recording import Recording

LEAST_VALUES = 8
"""With fewer, the test of Mann and Kendall cannot reach its level in a recording of many cells."""
MOST_VALUES = 20
"""A long course is averaged to so many blocks: seconds that follow each other are alike, and the test, which takes them
for independent, would see trends everywhere (ours)."""
FALSE_ALARM = 0.01
"""Chance that a recording of values without a trend has one somewhere."""
HUNG = 1e-3
"""A rate below this part of the largest counts as this part: a hang has no logarithm, and says no more than that
(ours)."""
LEAST_DRIFT_PCT = 5.0
"""From first to last; half of what the steady-state rule of the PTS lets pass (ours)."""


@dataclass(frozen=True)
class Trend:
    """Of values in order."""

    drift_pct: float
    """Rise from the first value to the last, of the first, by the line of Theil and Sen through the logarithms (the
    median of all slopes between two values: Sen, Journal of the American Statistical Association 63, 1968): a fall is
    so never one by more than 100 %."""
    chance: float
    """Of an order so monotone without a trend, two-sided (Mann, Econometrica 13, 1945; Kendall's tau with time)."""
    values: int


def trend(values: Floats) -> Trend:
    """Raises ValueError for fewer than two values."""
    if len(values) < 2:
        raise ValueError("a trend takes two values")
    times = np.arange(len(values), dtype=float)
    largest = float(values.max())
    logarithms = np.log(np.maximum(values / largest, HUNG)) if largest > 0 else np.zeros(len(values))
    rise = float(stats.theilslopes(logarithms, times).slope) * (len(values) - 1)
    drift_pct = 100 * float(np.expm1(rise))
    chance = float(stats.kendalltau(times, values).pvalue)
    return Trend(drift_pct, chance if np.isfinite(chance) else 1.0, len(values))


def blocks(values: Floats, most: int = MOST_VALUES) -> Floats:
    """Means of equal stretches, `most` of them; shorter courses as they are."""
    if len(values) <= most:
        return values
    return np.array([part.mean() for part in np.array_split(values, most)])


def drift(recording: Recording) -> Iterator[Finding]:
    """Over the rounds that are repeats, and over the slices of soaks that count: `value` is the drift in percent."""
    courses = {
        label: (one["iops"], one["elapsed_s"].min(), (one["elapsed_s"] + one["runtime_s"]).max())
        for label, one in recording.rounds.items()
        if len(one) >= LEAST_VALUES
    }
    courses |= {
        label: (one["iops"], one["begin_s"].min(), one["end_s"].max())
        for label, one in recording.counted_seconds.items()
        if len(one) >= LEAST_VALUES
    }
    chance = FALSE_ALARM / max(len(courses), 1)
    trends = {label: trend(blocks(iops.to_numpy(dtype=float))) for label, (iops, _, _) in courses.items()}
    found = [
        Finding(
            True,
            f"{'rises' if one.drift_pct > 0 else 'falls'} by {abs(one.drift_pct):.1f} % from begin to end "
            f"(Mann-Kendall p = {one.chance:.1g})",
            cell_label=label,
            metric="iops",
            value=one.drift_pct,
            threshold=LEAST_DRIFT_PCT,
            unit="%",
            begin_s=float(courses[label][1]),
            end_s=float(courses[label][2]),
        )
        for label, one in trends.items()
        if one.chance < chance and abs(one.drift_pct) >= LEAST_DRIFT_PCT
    ]
    nothing = Finding(False, f"no drift in the values of {len(courses)} cells") if courses else None
    yield from told_or_nothing(found, nothing)
