"""Detect drift: repeats that rise or fall throughout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import stats

from drivelab.analysis.detectors.courses import Floats
from drivelab.analysis.detectors.detection import Declared, Finding, Recording, findings_or_nothing

LEAST_VALUES = 8
"""With fewer values, the Mann-Kendall test cannot reach its level in a recording of many cells."""
MOST_VALUES = 20
"""A long course is averaged to this many blocks: the test assumes independent values, but successive seconds are
correlated and would show trends everywhere (ours)."""
FALSE_ALARM = 0.01
"""Chance of at least one false trend in a recording without any."""
HUNG = 1e-3
"""Smallest rate, as a fraction of the largest: lower rates count as this one, as zero has no logarithm (ours)."""
LEAST_DRIFT_PCT = 5.0
"""Smallest drift from first to last value; half of what the steady-state rule of the PTS allows (ours)."""


@dataclass(frozen=True)
class Trend:
    """The trend of values in order."""

    drift_pct: float
    """Rise from first to last value, in percent of the first, by the Theil-Sen line through the logarithms (the median
    of all slopes between two values: Sen, Journal of the American Statistical Association 63, 1968). With logarithms a
    fall cannot exceed 100 %."""
    chance: float
    """Two-sided p-value of so monotone an order without a trend (Mann, Econometrica 13, 1945; Kendall's tau with
    time)."""
    values: int


def trend(values: Floats) -> Trend:
    """Return the trend of `values`, shape (n,); raises ValueError for fewer than two."""
    if len(values) < 2:
        raise ValueError("a trend needs at least two values")
    times = np.arange(len(values), dtype=float)
    largest = float(values.max())
    logarithms = np.log(np.maximum(values / largest, HUNG)) if largest > 0 else np.zeros(len(values))
    rise = float(stats.theilslopes(logarithms, times).slope) * (len(values) - 1)
    drift_pct = 100 * float(np.expm1(rise))
    chance = float(stats.kendalltau(times, values).pvalue)
    return Trend(drift_pct, chance if np.isfinite(chance) else 1.0, len(values))


def blocks(values: Floats, most: int = MOST_VALUES) -> Floats:
    """Return the means of `most` equal stretches, or fewer values unchanged."""
    if len(values) <= most:
        return values
    return np.array([part.mean() for part in np.array_split(values, most)])


def drift(recording: Recording) -> Iterator[Finding]:
    """Find drift in rounds that are repeats and in the slices of soaks that count.

    `value` is the drift in percent.
    """
    courses = {
        label: (rounds["iops"], rounds["elapsed_s"].min(), (rounds["elapsed_s"] + rounds["runtime_s"]).max())
        for label, rounds in recording.rounds.items()
        if len(rounds) >= LEAST_VALUES
    }
    courses |= {
        label: (course["iops"], course["begin_s"].min(), course["end_s"].max())
        for label, course in recording.counted_seconds.items()
        if len(course) >= LEAST_VALUES
    }
    chance = FALSE_ALARM / max(len(courses), 1)
    trends = {label: trend(blocks(iops.to_numpy(dtype=float))) for label, (iops, _, _) in courses.items()}
    findings = [
        Finding(
            True,
            f"{'rises' if found_trend.drift_pct > 0 else 'falls'} by {abs(found_trend.drift_pct):.1f} % from begin to "
            f"end (Mann-Kendall p = {found_trend.chance:.1g})",
            cell_label=label,
            metric="iops",
            value=found_trend.drift_pct,
            threshold=LEAST_DRIFT_PCT,
            unit="%",
            begin_s=float(courses[label][1]),
            end_s=float(courses[label][2]),
        )
        for label, found_trend in trends.items()
        if found_trend.chance < chance and abs(found_trend.drift_pct) >= LEAST_DRIFT_PCT
    ]
    nothing = Finding(False, f"no drift in the values of {len(courses)} cells") if courses else None
    yield from findings_or_nothing(findings, nothing)


DETECTOR = Declared("drift", drift, place=4)
