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
MODIFIED_Z_OF_OTHERS = 5.0
"""The same with the largest of the deviations of all cells of the recording (ours, measured: see docs/detectors.md)."""
LEAST_OFF_PCT = 5.0
"""What is nearer to the median changes no result: half of what the steady-state rule of the PTS lets pass (ours)."""
FALSE_ALARM = 0.01
"""Chance that a recording of undisturbed normal values has an outlier. With five rounds the modified z alone would call
one in six of them so; an outlier must also be out of the reach of what the others predict (`chances`)."""
MOST_SHARE = 1 / 3
"""Of the rounds of a cell: more than these are no outliers, but another level (ours)."""
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


def chances(values: Floats) -> Floats:
    """For each value, the chance that normal values have an outlier as far off as it; 1 for all but the farthest third.

    By the generalised extreme studentised deviates of Rosner (Technometrics 25, 1983): the value farthest from the mean
    is put beside all others, by Student's t for each of as many as there are; then the next one, without the first, and
    so on. A value is an outlier if it or one that is taken out after it is one: so two cannot hide each other.
    """
    found, left = np.ones(len(values)), np.arange(len(values))
    taken: list[int] = []
    steps: list[float] = []
    while len(taken) < max(int(MOST_SHARE * len(values)), 1) and len(left) > 3:
        rest = values[left]
        off = np.abs(rest - rest.mean())
        place = int(np.argmax(off >= (1 - 1e-9) * off.max()))  # the first of equals, whatever the rounding
        others = np.delete(rest, place)
        distance = abs(float(rest[place] - others.mean()))
        spread = float(others.std(ddof=1)) * np.sqrt(1 + 1 / len(others))
        one = 2 * float(stats.t.sf(distance / spread, len(others) - 1)) if spread > 0 else float(distance == 0)
        steps.append(min(len(rest) * one, 1.0))
        taken.append(int(left[place]))
        left = np.delete(left, place)
    found[taken] = np.minimum.accumulate(steps[::-1])[::-1]
    return found


def outlier_runs(recording: Recording) -> Iterator[Finding]:
    """`value` is the deviation from the median in percent, or the length of a slow spell in seconds."""
    groups = {label: one for label, one in recording.rounds.items() if len(one) >= LEAST_VALUES}
    courses = {label: one for label, one in recording.counted_seconds.items() if len(one) > 2 * LEAST_SLOW_S}
    tested = sum(len(one) for one in groups.values())
    rates = [one["iops"].to_numpy(dtype=float) for one in groups.values()]
    widest = max((_relative_mad(one) for one in rates), default=0.0)
    chance = FALSE_ALARM / 2 / max(len(groups), 1)  # half of it is for cells that are judged beside the others
    found = [row for label, one in groups.items() for row in _outliers(label, one, chance, widest)]
    found += [row for label, one in courses.items() for row in _slow_spells(label, one)]
    looked = [f"{tested} values of rounds"] * bool(groups)
    looked += [f"{sum(len(one) for one in courses.values())} seconds of soaks"] * bool(courses)
    nothing = Finding(False, f"no outlier in {' and '.join(looked)}") if looked else None
    yield from told_or_nothing(found, nothing)


def _relative_mad(values: Floats) -> float:
    """Median absolute deviation of the median."""
    usual = float(np.median(values))
    return float(np.median(np.abs(values - usual))) / usual if usual > 0 else 0.0


def _outliers(label: str, rounds: pd.DataFrame, chance: float, widest: float) -> Iterator[Finding]:
    """An outlier is one for all cells together (`chance`), or for its own and beside `widest`, the largest relative MAD
    of them: five rounds alone tell too little of their scatter."""
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
