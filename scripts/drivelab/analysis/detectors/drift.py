"""Detect drift: repeats that rise or fall throughout."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from drivelab.analysis.detectors.detection import Declared, Finding, Recording
from drivelab.analysis.values.bursts import bursts
from drivelab.criteria.settling import Floats

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
CLEAR = 0.998
"""Share of the variance that a monotone course explains, from which on a trend is clear although the values correlate:
a fall that levels off leaves correlated residuals too (ours)."""
_MOST_CORRELATION = 0.95


@dataclass(frozen=True)
class Trend:
    """The trend of values in order."""

    drift_pct: float
    """Rise from first to last value, in percent of the first, by the Theil-Sen line through the logarithms (the median
    of all slopes between two values: Sen, Journal of the American Statistical Association 63, 1968). With logarithms a
    fall cannot exceed 100 %."""
    chance: float
    """Two-sided p-value of so monotone an order of independent values without a trend (Mann, Econometrica 13, 1945;
    Kendall's tau with time)."""
    values: int
    statistic: float
    """Kendall's S: pairs in ascending order less pairs in descending order."""

    def chance_correlated(self, correlation: float) -> float:
        """Return the p-value for values with this correlation of successive ones (Hamed and Rao, Journal of Hydrology
        204, 1998); never below that of independent values."""
        n, distance = self.values, np.arange(1, self.values)
        weights = (n - distance) * (n - distance - 1) * (n - distance - 2)
        inflation = 1 + 2 / (n * (n - 1) * (n - 2)) * float((weights * correlation**distance).sum()) if n > 2 else 1.0
        variance = n * (n - 1) * (2 * n + 5) / 18 * inflation
        z = max(abs(self.statistic) - 1, 0.0) / math.sqrt(variance)
        return max(2 * float(special.ndtr(-z)), self.chance)


def trend(values: Floats) -> Trend:
    """Return the trend of `values`, shape (n,); raises ValueError for fewer than two."""
    from scipy import stats  # slow to import

    if len(values) < 2:
        raise ValueError("a trend needs at least two values")
    times = np.arange(len(values), dtype=float)
    largest = float(values.max())
    logarithms = np.log(np.maximum(values / largest, HUNG)) if largest > 0 else np.zeros(len(values))
    rise = float(stats.theilslopes(logarithms, times).slope) * (len(values) - 1)
    drift_pct = 100 * float(np.expm1(rise))
    chance = float(stats.kendalltau(times, values).pvalue)
    statistic = float(np.sign(values[None, :] - values[:, None])[np.triu_indices(len(values), 1)].sum())
    return Trend(drift_pct, chance if np.isfinite(chance) else 1.0, len(values), statistic)


def clear(values: Floats) -> bool:
    """Return whether a monotone course explains nearly all of the variance of the values."""
    from scipy import optimize  # slow to import

    total = float(((values - values.mean()) ** 2).sum())
    courses = (optimize.isotonic_regression(values, increasing=increasing).x for increasing in (True, False))
    return total > 0 and min(float(((values - course) ** 2).sum()) for course in courses) <= (1 - CLEAR) * total


def correlation(courses: Iterable[Floats]) -> float:
    """Return the correlation of successive values around straight lines, over all courses, from 0 on.

    It is corrected for the bias of short courses (Kendall, Biometrika 41, 1954) and one standard error high, as a
    single course shows it badly. 0 for courses without scatter.
    """
    products = squares = weighted = 0.0
    count = 0
    for values in courses:
        times = np.arange(len(values)) - (len(values) - 1) / 2
        relative = values / values.mean() - 1 if values.mean() else values
        rest = relative - times * float(relative @ times) / float(times @ times)
        products, squares = products + float(rest[1:] @ rest[:-1]), squares + float(rest @ rest)
        count, weighted = count + len(values), weighted + len(values) ** 2
    if squares <= 1e-18 * count:
        return 0.0
    length = weighted / count
    unbiased = min(max((length * products / squares + 2) / (length - 4), -1.0), 1.0)
    return min(max(unbiased + (1 - unbiased**2) / math.sqrt(count), 0.0), _MOST_CORRELATION)


def blocks(values: Floats, most: int = MOST_VALUES) -> Floats:
    """Return the means of `most` equal stretches, or fewer values unchanged."""
    if len(values) <= most:
        return values
    return np.array([part.mean() for part in np.array_split(values, most)])


def drift(recording: Recording) -> Iterator[Finding]:
    """Find drift in rounds that are repeats and in the slices of soaks that count.

    Bursts after idle times are left out: their rate falls when a cache ends. `value` is the drift in percent.
    """
    spans = {
        label: (rounds["iops"], rounds["elapsed_s"].min(), (rounds["elapsed_s"] + rounds["runtime_s"]).max())
        for label, rounds in recording.rounds.items()
    }
    for label, course in ({} if bursts(recording.cells) else recording.counted_seconds).items():
        spans[label] = course["iops"], course["begin_s"].min(), course["end_s"].max()
    spans = {label: span for label, span in spans.items() if len(span[0]) >= LEAST_VALUES}
    level = FALSE_ALARM / max(len(spans), 1)
    values = {label: blocks(iops.to_numpy(dtype=float)) for label, (iops, _, _) in spans.items()}
    correlated = correlation(values.values())
    findings = []
    for label, course in values.items():
        found = trend(course)
        chance = found.chance_correlated(correlated)
        is_trend = chance < level or (found.chance < level and clear(course))
        if abs(found.drift_pct) >= LEAST_DRIFT_PCT and is_trend:
            words = (
                f"{'rises' if found.drift_pct > 0 else 'falls'} by {abs(found.drift_pct):.1f} % from begin to end "
                f"(Mann-Kendall p = {chance:.1g}, correlation of successive values {correlated:.1g})"
            )
            _, begin_s, end_s = spans[label]
            findings.append(
                Finding(True, words, label, "iops", found.drift_pct, LEAST_DRIFT_PCT, "%", float(begin_s), float(end_s))
            )
    yield from findings or [Finding(False, f"no drift in the values of {len(spans)} cells")] * bool(spans)


DETECTOR = Declared("drift", drift, place=4)
