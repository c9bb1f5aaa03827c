"""Detect outliers among runs and rounds, and slow spells within a soak."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy import special

from drivelab.analysis.detectors.courses import local_median, robust_sigma, spells
from drivelab.analysis.detectors.detection import Declared, Finding, Recording
from drivelab.criteria.settling import Floats

MODIFIED_Z = 3.5
"""Modified z-score above which a value may be an outlier: 0.6745 times the distance from the median, in median absolute
deviations (Iglewicz and Hoaglin, How to Detect and Handle Outliers, ASQC 1993)."""
MODIFIED_Z_OF_OTHERS = 5.0
"""The same, with the largest median absolute deviation of all cells of the recording (ours, measured: see
docs/detectors.md)."""
LEAST_OFF_PCT = 5.0
"""A value closer to the median changes no result: half of what the steady-state rule of the PTS allows (ours)."""
FALSE_ALARM = 0.01
"""Chance of an outlier in a recording of undisturbed normal values. With five rounds, the modified z-score alone would
flag one recording in six; an outlier must also be improbable given the other values (`chances`)."""
MOST_SHARE = 1 / 3
"""Largest share of a cell's rounds that can be outliers: more rounds are another level (ours)."""
LEAST_VALUES = 5
"""With fewer values, no outlier can be detected."""
SLOW_PCT = 20.0
"""A second this far below the usual rate is slow; the PTS allows the values of a steady-state window this spread."""
LEAST_SLOW_S, MOST_SLOW_S = 3, 30
"""A slow spell is longer than a single hiccup and short enough not to be a new level (ours)."""


def modified_z(values: Floats) -> Floats:
    """Return the modified z-score of each value, shape (n,).

    If more than half of the values are equal, these have 0 and all others infinity.
    """
    distance = values - np.median(values)
    spread = float(np.median(np.abs(distance)))
    if spread > 0:
        return np.asarray(0.6745 * distance / spread)
    return np.where(distance == 0, 0.0, np.copysign(np.inf, distance))


def chances(values: Floats) -> Floats:
    """Return the chance that normal values have an outlier this far off; shape (n,).

    The method is Rosner's generalised extreme studentised deviate (Technometrics 25, 1983). It tests the value farthest
    from the mean against all others, by Student's t times the number of values; then it removes the value and tests the
    next one. A value is an outlier if it or a value removed later is one, so two outliers cannot hide each other. Only
    the farthest third is tested; all other values have chance 1.
    """
    result, left = np.ones(len(values)), np.arange(len(values))
    removed: list[int] = []
    steps: list[float] = []
    while len(removed) < max(int(MOST_SHARE * len(values)), 1) and len(left) > 3:
        rest = values[left]
        off = np.abs(rest - rest.mean())
        place = int(np.argmax(off >= (1 - 1e-9) * off.max()))  # the first of equal values, despite rounding
        others = np.delete(rest, place)
        distance = abs(float(rest[place] - others.mean()))
        spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / len(others))
        chance = 2 * float(special.stdtr(len(others) - 1, -distance / spread)) if spread > 0 else float(distance == 0)
        steps.append(min(len(rest) * chance, 1.0))
        removed.append(int(left[place]))
        left = np.delete(left, place)
    result[removed] = np.minimum.accumulate(steps[::-1])[::-1]
    return result


def outlier_runs(recording: Recording) -> Iterator[Finding]:
    """Find outlying rounds and slow spells.

    `value` is the deviation from the median in percent, or the length of a slow spell in seconds.
    """
    groups = {label: rounds for label, rounds in recording.rounds.items() if len(rounds) >= LEAST_VALUES}
    courses = {label: course for label, course in recording.counted_seconds.items() if len(course) > 2 * LEAST_SLOW_S}
    tested = sum(len(rounds) for rounds in groups.values())
    usual = {label: float(rounds["iops"].median()) for label, rounds in groups.items()}
    widest = max(
        (float((groups[label]["iops"] - level).abs().median()) / level for label, level in usual.items() if level > 0),
        default=0.0,
    )
    chance = FALSE_ALARM / 2 / max(len(groups), 1)  # the other half is for cells judged by the widest scatter
    findings = [row for label, rounds in groups.items() for row in _outliers(label, rounds, chance, widest)]
    findings += [row for label, course in courses.items() for row in _slow_spells(label, course)]
    checked = [f"{tested} values of rounds"] * bool(groups)
    checked += [f"{sum(len(course) for course in courses.values())} seconds of soaks"] * bool(courses)
    yield from findings or [Finding(False, f"no outlier in {' and '.join(checked)}")] * bool(checked)


def _outliers(label: str, rounds: pd.DataFrame, chance: float, widest: float) -> Iterator[Finding]:
    """Yield the outliers among the rounds of a cell.

    An outlier passes the level for all cells together (`chance`), or both the level of its cell and the z-score
    with `widest`, the largest relative MAD of all cells: five rounds alone show their scatter too poorly.
    """
    values = rounds["iops"].to_numpy(dtype=float)
    usual = float(np.median(values))
    scores, by_chance = modified_z(values), chances(values)
    apart = 0.6745 * np.abs(values - usual) > MODIFIED_Z_OF_OTHERS * widest * usual
    is_outlier = (by_chance < chance) | ((by_chance < FALSE_ALARM) & apart)
    for index in np.flatnonzero((np.abs(scores) > MODIFIED_Z) & is_outlier):
        off_pct = 100 * (values[index] / usual - 1) if usual > 0 else 0.0
        if abs(off_pct) < LEAST_OFF_PCT:
            continue
        row = rounds.iloc[int(index)]
        far = f"modified z {scores[index]:.0f}" if np.isfinite(scores[index]) else "all others are equal"
        side = "above" if off_pct > 0 else "below"
        words = f"round {row['round']} is {abs(off_pct):.0f} % {side} the median of {len(values)} ({far})"
        span = float(row["elapsed_s"]), float(row["elapsed_s"] + row["runtime_s"])
        yield Finding(True, words, label, "iops", float(off_pct), LEAST_OFF_PCT, "%", *span)


def _slow_spells(label: str, course: pd.DataFrame) -> Iterator[Finding]:
    iops = course["iops"].to_numpy(dtype=float)
    usual = local_median(iops)
    relative = np.divide(iops, usual, out=np.ones_like(iops), where=usual > 0)
    least = max(SLOW_PCT / 100, MODIFIED_Z * robust_sigma(relative))
    enclosed = [(b, e) for b, e in spells(relative < 1 - least) if b > 0 and e < len(iops)]  # others may be a new level
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
    also = f"; the longest of {len(slow)} such spells" if len(slow) > 1 else ""
    words = f"{longest_s:.0f} s in a row were {down_pct:.0f} % slower than the time around them{also}"
    span = float(begins_s[begin]), float(ends_s[end - 1])
    yield Finding(True, words, label, "iops", longest_s, float(LEAST_SLOW_S), "s", *span)


DETECTOR = Declared("outlier runs", outlier_runs, place=3)
