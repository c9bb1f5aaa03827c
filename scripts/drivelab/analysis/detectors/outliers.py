"""Runs and rounds that lie apart from the others, and slow spells within a soak."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import stats

from drivelab.analysis.detectors.courses import Floats, local_median, robust_sigma, spells
from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.recording import Recording

MODIFIED_Z = 3.5
"""0.6745 times the distance from the median, in median absolute deviations (Iglewicz and Hoaglin, How to Detect and
Handle Outliers, ASQC 1993)."""
LEAST_OFF_PCT = 5.0
"""What is nearer to the median changes no result: half of what the steady-state rule of the PTS lets pass (ours)."""
FALSE_ALARM = 0.01
"""Chance that a recording of undisturbed normal values has an outlier. With five rounds the modified z alone would call
one in six of them so; an outlier must also be out of the reach of what the others predict (Student's t)."""
LEAST_VALUES = 5
"""With fewer, nothing can be told to be apart."""
SLOW_PCT = 20.0
"""A second this much below what is usual is slow; the PTS lets a whole steady-state window spread so far."""
LEAST_SLOW_S, MOST_SLOW_S = 3, 30
"""A slow spell is no single hiccup, and no new level: within a minute it must be over (ours)."""


def modified_z(values: Floats) -> Floats:
    """Of each value; infinite beside others that are all alike, 0 where it is one of them."""
    distance = values - np.median(values)
    spread = float(np.median(np.abs(distance)))
    if spread > 0:
        return np.asarray(0.6745 * distance / spread)
    return np.where(distance == 0, 0.0, np.copysign(np.inf, distance))


def beyond_prediction(values: Floats) -> Floats:
    """For each value, the chance (two-sided) of one so far from the mean of all others, were all normal and alike.

    The externally studentised residual, t with n - 2 degrees of freedom (Cook and Weisberg, Residuals and Influence in
    Regression, 1982).
    """
    chances = np.ones(len(values))
    for index, value in enumerate(values):
        others = np.delete(values, index)
        spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / len(others))
        distance = abs(float(value - others.mean()))
        if spread > 0:
            chances[index] = 2 * float(stats.t.sf(distance / spread, len(others) - 1))
        elif distance > 0:
            chances[index] = 0.0
    return chances


def outlier_runs(recording: Recording) -> Iterator[Finding]:
    """`value` is the deviation from the median in percent, or the length of a slow spell in seconds."""
    groups = {label: one for label, one in recording.rounds.items() if len(one) >= LEAST_VALUES}
    courses = {label: one for label, one in recording.counted_seconds.items() if len(one) > 2 * LEAST_SLOW_S}
    tested = sum(len(one) for one in groups.values())
    found = [row for label, one in groups.items() for row in _outliers(label, one, FALSE_ALARM / max(tested, 1))]
    found += [row for label, one in courses.items() for row in _slow_spells(label, one)]
    looked = [f"{tested} values of rounds"] * bool(groups)
    looked += [f"{sum(len(one) for one in courses.values())} seconds of soaks"] * bool(courses)
    nothing = Finding(False, f"no outlier in {' and '.join(looked)}") if looked else None
    yield from told_or_nothing(found, nothing)


def _outliers(label: str, rounds: pd.DataFrame, chance: float) -> Iterator[Finding]:
    values = rounds["iops"].to_numpy(dtype=float)
    usual = float(np.median(values))
    scores, chances = modified_z(values), beyond_prediction(values)
    for index in np.flatnonzero((np.abs(scores) > MODIFIED_Z) & (chances < chance)):
        off_pct = 100 * (values[index] / usual - 1) if usual > 0 else 0.0
        if abs(off_pct) < LEAST_OFF_PCT:
            continue
        row = rounds.iloc[int(index)]
        far = f"modified z {scores[index]:.0f}" if np.isfinite(scores[index]) else "all others are alike"
        yield Finding(
            True,
            f"round {row['round']} is {abs(off_pct):.0f} % {'above' if off_pct > 0 else 'below'} the median of "
            f"{len(values)} ({far})",
            cell_label=label,
            metric="iops",
            value=float(off_pct),
            threshold=LEAST_OFF_PCT,
            unit="%",
            begin_s=float(row["elapsed_s"]),
            end_s=float(row["elapsed_s"] + row["runtime_s"]),
        )


def _slow_spells(label: str, course: pd.DataFrame) -> Iterator[Finding]:
    iops = course["iops"].to_numpy(dtype=float)
    usual = local_median(iops)
    relative = np.divide(iops, usual, out=np.ones_like(iops), where=usual > 0)
    least = max(SLOW_PCT / 100, MODIFIED_Z * robust_sigma(relative))
    enclosed = [(b, e) for b, e in spells(relative < 1 - least) if b > 0 and e < len(iops)]  # else maybe another level
    begins_s, ends_s = (course[name].to_numpy(dtype=float) for name in ("begin_s", "end_s"))
    slow = [
        (float(ends_s[e - 1] - begins_s[b]), b, e)
        for b, e in enclosed
        if e - b >= LEAST_SLOW_S and ends_s[e - 1] - begins_s[b] <= MOST_SLOW_S
    ]
    if not slow:
        return
    longest_s, begin, end = max(slow)
    down_pct = 100 * (1 - float(np.median(relative[begin:end])))
    also = f", the longest of {len(slow)} such spells" if len(slow) > 1 else ""
    yield Finding(
        True,
        f"{longest_s:.0f} s in a row were {down_pct:.0f} % slower than the time around them{also}",
        cell_label=label,
        metric="iops",
        value=longest_s,
        threshold=float(LEAST_SLOW_S),
        unit="s",
        begin_s=float(begins_s[begin]),
        end_s=float(ends_s[end - 1]),
    )
