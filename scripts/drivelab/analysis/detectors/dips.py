"""Dips that come back by the clock: garbage collection, a refresh, a log that is written out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from drivelab.analysis.detectors.courses import Floats, local_quantile, spells
from drivelab.analysis.detectors.finding import Finding, told_or_nothing
from drivelab.analysis.detectors.recording import Recording

LEAST_DEPTH_PCT = 10.0
"""A second this much below what is usual is a dip: the PTS lets a steady rate be so far off its average either way."""
USUAL = 0.6
"""Quantile of the minute around that is usual: the median would be the bottom of dips that take half of the time."""
SIGMAS = 3.5
"""It must stand out from the noise too: of normal noise one second in 2000 does."""
LEAST_DIPS = 6
"""Five distances: with fewer, dips by chance look regular too often (ours, measured in the tests)."""
MOST_VARIATION = 0.2
"""Standard deviation of the distances between dips, of their mean: 1 where they come by chance (a Poisson process), 0
by the clock; a period of three to four seconds, seen by whole seconds, comes to 0.15 (ours)."""


@dataclass(frozen=True)
class Clock:
    """Dips of one course."""

    dips: int
    period_s: float
    """Median distance from the begin of one to that of the next."""
    variation: float
    """Standard deviation of the distances, of their mean."""
    depth_pct: float
    """How far the median dip lies below what is usual."""
    begin_s: float
    end_s: float


def clock_of_dips(course: pd.DataFrame) -> Clock | None:
    """The dips of a course (begin_s, end_s, iops), or None if there are fewer than `LEAST_DIPS`."""
    iops = course["iops"].to_numpy(dtype=float)
    usual = local_quantile(iops, USUAL)
    relative = np.divide(iops, usual, out=np.ones_like(iops), where=usual > 0)
    if not len(relative):
        return None
    least = max(LEAST_DEPTH_PCT / 100, SIGMAS * _sigma_above(relative))
    found = spells(relative < 1 - least)
    if len(found) < LEAST_DIPS:
        return None
    begins_s = course["begin_s"].to_numpy(dtype=float)[[begin for begin, _ in found]]
    distances_s = np.diff(begins_s)
    depths = [1 - relative[begin:end].min() for begin, end in found]
    return Clock(
        dips=len(found),
        period_s=float(np.median(distances_s)),
        variation=float(distances_s.std() / distances_s.mean()),
        depth_pct=100 * float(np.median(depths)),
        begin_s=float(begins_s[0]),
        end_s=float(course["end_s"].iloc[found[-1][1] - 1]),
    )


def _sigma_above(relative: Floats) -> float:
    """Standard deviation of normal values by those above their quantile `USUAL`, which is 1: dips are not of them."""
    above = relative[relative >= 1] - 1
    middle, usual = stats.norm.ppf([(1 + USUAL) / 2, USUAL])
    return float(np.median(above) / (middle - usual)) if len(above) else 0.0


def periodic_dips(recording: Recording) -> Iterator[Finding]:
    """In each soak's slices that count: `value` is the period in seconds.

    Seconds show periods of two and more; what is shorter shows as another one or not at all.
    """
    courses = {label: one for label, one in recording.counted_seconds.items() if len(one) >= 2 * LEAST_DIPS}
    clocks = {label: clock_of_dips(one) for label, one in courses.items()}
    found = [
        Finding(
            True,
            f"{one.dips} dips, one every {one.period_s:.3g} s, by {one.depth_pct:.0f} %",
            cell_label=label,
            metric="iops",
            value=one.period_s,
            unit="s",
            begin_s=one.begin_s,
            end_s=one.end_s,
        )
        for label, one in clocks.items()
        if one is not None and one.variation <= MOST_VARIATION
    ]
    seconds = sum(len(one) for one in courses.values())
    nothing = Finding(False, f"no dips by the clock in {seconds} seconds of soaks") if courses else None
    yield from told_or_nothing(found, nothing)
