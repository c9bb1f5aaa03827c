"""Find where the level of an ordered series changed, with a known chance of a false alarm.

The statistic of a series is the largest two-sample t over all places where it may be split, with at least FEWEST
values on both sides: the likelihood ratio test for one change of a normal mean (Worsley, Journal of the American
Statistical Association 74, 1979). Its p-value is the share of SIMULATED series of independent values, of the same
design and without a change, that reach it. A series with a change is split there, and both parts are searched in the
same way: binary segmentation (Scott and Knott, Biometrics 30, 1974). All values are logarithms, so a change is a ratio.

The size of a change is measured at the place where it is largest, so it is on average a little too large.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from scipy import stats

from drivelab.analysis.deltas.inference import interval
from drivelab.analysis.deltas.recordings import ROUNDING, Floats, ratios
from drivelab.criteria.repeats import FEWEST

SIMULATED = 9_999
"""Series without a change; the smallest p-value is 1 / (SIMULATED + 1)."""
_SEED = 20_261_126
_AT_ONCE = 2_000_000
"""Values that are simulated at a time, which bounds memory."""


@dataclass(frozen=True)
class Design:
    """Which point and which drive each value of a series belongs to; points come in order."""

    points: tuple[int, ...]
    drives: tuple[int, ...]
    by_point: bool
    """Whether a point's values are averaged first, because they share more than their drive: a date."""

    def part(self, start: int, end: int) -> Design:
        """Return the design of the points from `start` to before `end`."""
        kept = [place for place, point in enumerate(self.points) if start <= point < end]
        points, drives = (tuple(of[place] for place in kept) for of in (self.points, self.drives))
        return Design(points, drives, self.by_point)


@dataclass(frozen=True)
class Shift:
    """The difference of two levels of a series, as logarithms."""

    log: float
    low: float
    high: float
    """Ends of its interval."""
    before: int
    after: int
    """Numbers of values of both levels."""


@dataclass(frozen=True)
class Change:
    """A change of level."""

    point: int
    """The first point of the new level."""
    p_value: float
    shift: Shift


def centred(logs: Floats, design: Design) -> tuple[Floats, list[int]]:
    """Return the values that are searched, shape (…, values), and the point of each.

    With several drives, the mean of each drive is subtracted: drives of one model differ, and measuring
    another drive is not a change.
    """
    drives, points = np.asarray(design.drives), np.asarray(design.points)
    if len(set(design.drives)) > 1:
        logs = np.array(logs)
        for drive in set(design.drives):
            logs[..., drives == drive] -= logs[..., drives == drive].mean(axis=-1, keepdims=True)
    if not design.by_point:
        return logs, list(design.points)
    names = sorted(set(design.points))
    return np.stack([logs[..., points == name].mean(axis=-1) for name in names], axis=-1), names


def first_change(logs: Sequence[float], design: Design) -> tuple[int, float] | None:
    """Return the point where a series most likely changed and its p-value; None for a series too short to split."""
    if len(logs) < 2 * FEWEST:
        return None
    values, points = centred(np.asarray(logs, dtype=float), design)
    places = _places(points)
    if not places:
        return None
    statistics = _statistics(values[None, :], places)[0]
    best = int(statistics.argmax())
    if np.ptp(values) <= ROUNDING:
        return points[places[best]], 1.0
    reached = len(_simulated(design)) - int(np.searchsorted(_simulated(design), statistics[best] * (1 - ROUNDING)))
    return points[places[best]], (reached + 1) / (SIMULATED + 1)


def changes(logs: Sequence[float], design: Design, critical: float) -> list[Change]:
    """Return the changes of level in order; `critical` is the largest p-value of one, adjusted for all series."""
    points = sorted(set(design.points))
    places = sorted(_found(np.asarray(logs, dtype=float), design, points[0], points[-1] + 1, critical))
    bounds = [points[0], *(point for point, _ in places), points[-1] + 1]
    return [
        Change(point, p, shift(logs, design, (bounds[place], point), (point, bounds[place + 2]), critical))
        for place, (point, p) in enumerate(places)
    ]


def shift(
    logs: Sequence[float], design: Design, before: tuple[int, int], after: tuple[int, int], outside: float
) -> Shift:
    """Return the difference of two levels, each from its first point to before its last.

    Its interval misses the true one with probability `outside`, at given places.
    """
    kept = np.array([before[0] <= point < before[1] or after[0] <= point < after[1] for point in design.points])
    points_of_both, drives = (tuple(np.asarray(of)[kept].tolist()) for of in (design.points, design.drives))
    of_both = Design(points_of_both, drives, design.by_point)
    values, points = centred(np.asarray(logs, dtype=float)[kept], of_both)
    sides = [np.array([value for value, point in zip(values, points, strict=True) if low <= point < high])
             for low, high in (before, after)]  # fmt: skip
    both = ratios(sides[0][None, :], sides[1][None, :])
    if not design.by_point and (own := len(set(drives)) - 1):  # the means of the drives took degrees of freedom
        share = max(len(values) - 2 - own, 1) / (len(values) - 2)
        both = replace(both, errors=both.errors / math.sqrt(share), freedom=both.freedom * share)
    low, high = interval(both, np.array([outside]))
    return Shift(float(both.logs[0]), float(low[0]), float(high[0]), len(sides[0]), len(sides[1]))


def scatter(logs: Sequence[float], design: Design, bounds: Sequence[int], outside: float = 0.05) -> float | None:
    """Return half the interval of the difference of two points of one level, by the scatter within all levels.

    `bounds` are the first point of each level and the end. None if the levels leave fewer than FEWEST degrees of
    freedom.
    """
    squares, freedom = 0.0, 0
    for start, end in pairwise(bounds):
        inside = np.array([start <= point < end for point in design.points])
        if inside.any():
            values, _ = centred(np.asarray(logs, dtype=float)[inside], design.part(start, end))
            squares += float(((values - values.mean()) ** 2).sum())
            freedom += len(values) - 1
    if freedom < FEWEST:
        return None
    return float(stats.t.isf(outside / 2, freedom)) * math.sqrt(2 * squares / freedom)


def _found(logs: Floats, design: Design, start: int, end: int, critical: float) -> Iterator[tuple[int, float]]:
    inside = np.array([start <= point < end for point in design.points])
    part = design.part(start, end)
    found = first_change(logs[inside].tolist(), part)
    if found is None or not found[1] <= critical:
        return
    yield found
    yield from _found(logs, design, start, found[0], critical)
    yield from _found(logs, design, found[0], end, critical)


def _places(points: Sequence[int]) -> list[int]:
    """Return the positions before which a series may be split: between points, FEWEST values from both ends."""
    return [place for place in range(FEWEST, len(points) - FEWEST + 1) if points[place] != points[place - 1]]


def _statistics(values: Floats, places: Sequence[int]) -> Floats:
    """Return |t| of each split, shape (series, places), of values of shape (series, values)."""
    count = values.shape[1]
    deviations = values - values.mean(axis=1, keepdims=True)
    left = np.asarray(places, dtype=float)
    sums = deviations.cumsum(axis=1)[:, np.asarray(places) - 1]
    explained = sums**2 * count / (left * (count - left))
    rest = np.maximum((deviations**2).sum(axis=1, keepdims=True) - explained, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        statistics: npt.NDArray[np.float64] = np.sqrt(explained / rest * (count - 2))
    return np.nan_to_num(statistics, nan=0.0, posinf=math.inf)


@lru_cache(maxsize=256)
def _simulated(design: Design) -> Floats:
    """Return the largest statistics of SIMULATED series without a change, ascending."""
    generator = np.random.default_rng(_SEED)
    rows = max(1, _AT_ONCE // len(design.points))
    largest = []
    for start in range(0, SIMULATED, rows):
        noise = generator.standard_normal((min(rows, SIMULATED - start), len(design.points)))
        values, points = centred(noise, design)
        largest.append(_statistics(values, _places(points)).max(axis=1))
    return np.sort(np.concatenate(largest))
