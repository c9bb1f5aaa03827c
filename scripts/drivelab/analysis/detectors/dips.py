"""Detect periodic dips of the rate, such as from garbage collection or refresh."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from drivelab.analysis.detectors.courses import STEADY_PCT, local_quantile, spells
from drivelab.analysis.detectors.detection import Declared, Finding, Recording

USUAL = 0.6
"""Quantile of the surrounding minute that is the usual rate. The median lies inside dips that take half the time."""
SIGMAS = 3.5
"""A dip must also exceed the noise by this many standard deviations: one second in 2000 of normal noise does."""
LEAST_DIPS = 6
"""Six dips have five distances: with fewer, random dips look regular too often (ours, measured in the tests)."""
MOST_VARIATION = 0.2
"""Standard deviation of the distances between dips, as a fraction of their mean: 1 for random dips (a Poisson process),
0 for exactly periodic ones. A period of three to four seconds, sampled each second, gives 0.15 (ours)."""


@dataclass(frozen=True)
class Clock:
    """The dips of one course."""

    dips: int
    period_s: float
    """Median distance between the starts of successive dips."""
    variation: float
    """Standard deviation of the distances, as a fraction of their mean."""
    depth_pct: float
    """How far the median dip lies below the usual rate."""
    begin_s: float
    end_s: float


def clock_of_dips(course: pd.DataFrame) -> Clock | None:
    """Return the dips of a course, or None for fewer than `LEAST_DIPS`. Columns: begin_s, end_s, iops."""
    iops = course["iops"].to_numpy(dtype=float)
    usual = local_quantile(iops, USUAL)
    relative = np.divide(iops, usual, out=np.ones_like(iops), where=usual > 0)
    if not len(relative):
        return None
    # the noise without dips, from the values above 1, which is their quantile USUAL
    above, (middle, quantile) = relative[relative >= 1] - 1, special.ndtri([(1 + USUAL) / 2, USUAL])
    sigma = float(np.median(above) / (middle - quantile)) if len(above) else 0.0
    least = max(STEADY_PCT / 100, SIGMAS * sigma)
    dips = spells(relative < 1 - least)
    if len(dips) < LEAST_DIPS:
        return None
    begins_s = course["begin_s"].to_numpy(dtype=float)[[begin for begin, _ in dips]]
    distances_s = np.diff(begins_s)
    depths = [1 - relative[begin:end].min() for begin, end in dips]
    return Clock(
        dips=len(dips),
        period_s=float(np.median(distances_s)),
        variation=float(distances_s.std() / distances_s.mean()),
        depth_pct=100 * float(np.median(depths)),
        begin_s=float(begins_s[0]),
        end_s=float(course["end_s"].iloc[dips[-1][1] - 1]),
    )


def periodic_dips(recording: Recording) -> Iterator[Finding]:
    """Find periodic dips in the slices of each soak that count.

    `value` is the period in seconds.
    One-second samples show periods of two seconds or more. A shorter period appears as a longer one or not at all.
    """
    courses = {label: course for label, course in recording.counted_seconds.items() if len(course) >= 2 * LEAST_DIPS}
    clocks = {label: clock_of_dips(course) for label, course in courses.items()}
    findings = []
    for label, clock in clocks.items():
        if clock is not None and clock.variation <= MOST_VARIATION:
            words = f"{clock.dips} dips, one every {clock.period_s:.3g} s, by {clock.depth_pct:.0f} %"
            findings.append(Finding(True, words, label, "iops", clock.period_s, None, "s", clock.begin_s, clock.end_s))
    seconds = sum(len(course) for course in courses.values())
    yield from findings or [Finding(False, f"no periodic dips in {seconds} seconds of soaks")] * bool(courses)


DETECTOR = Declared("periodic dips", periodic_dips, place=5)
