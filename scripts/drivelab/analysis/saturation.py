"""Write saturation: where a soak falls off its cliff, and its level at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.steady_state import WINDOW, determine

LAST_SHARE = 0.2
"""Part of a soak, at its end, that counts as saturated (ours: the PTS leaves the choice to the reader of
the plot)."""
LEAST_DROP = 1.25
"""Factor between the levels before and after from which a change is called a cliff (ours)."""
LASTING = 3
"""A fall lasts if so many slices at least show it (ours)."""
LONGER = 3
"""A fall is for good if the drive is low for so many times as long after it as it ever was before, and came back
(ours)."""
_CERTAIN = 5.0
"""Standard errors by which a fall must exceed the scatter of the slices: a soak has thousands of places where scatter
could look like one (ours)."""
_ROUNDING = 1e-9
"""A fall by just the least drop is one, however its means are rounded."""


@dataclass(frozen=True)
class Level:
    """What a metric is on average over some slices, in its unit."""

    average: float
    low: float
    high: float
    """Smallest and largest average of the five equal blocks of slices that the window is cut into."""
    steady: bool
    """Whether the five blocks meet the PTS rule for five rounds."""
    slices: int
    """Length of the window."""
    blocks: tuple[float, ...]
    """Averages of the blocks in order, as many as there are slices where these are fewer than five."""


@dataclass(frozen=True)
class Cliff:
    """Where a soak leaves the level of the fresh drive for good."""

    time_s: float
    """From the start of the first slice to the end of the last one before the cliff."""
    bytes_written: int
    """By the host since the end of conditioning, up to the cliff."""
    drive_fills: float
    """`bytes_written` in user capacities."""
    iops_before: float
    """Average over the slices before the cliff."""
    iops_after: float
    """Average over those of the saturated slices that are after it."""


def saturated_slices(slices: pd.DataFrame, last_share: float = LAST_SHARE, whole: int | None = None) -> pd.DataFrame:
    """The window: the last `last_share` of the slices, five at the least, or all if there are fewer.

    `whole` is the length of a soak of which `slices` are the end only.
    """
    return slices.tail(max(int((whole or len(slices)) * last_share), WINDOW))


def post_saturation(slices: pd.DataFrame, metric: str, last_share: float = LAST_SHARE) -> Level:
    """The level of `metric` over the saturated slices, steady or not; arguments and errors as for `level`."""
    return level(saturated_slices(slices, last_share), metric)


def level(window: pd.DataFrame, metric: str) -> Level:
    """`metric` (iops, bandwidth_mib_s, mean_latency_us) over slices that count, rows of `cells` in order.

    The average is over time for rates and over I/Os for latency: each slice counts by its runtime or its
    I/Os. Raises ValueError without any slice, or without any I/O in a latency's window.
    """
    if window.empty:
        raise ValueError("a soak without slices has no level")
    values = window[metric].to_numpy(dtype=float)
    if metric == "mean_latency_us":
        weights = (window["read_ios"] + window["write_ios"]).to_numpy(dtype=float)
    else:
        weights = window["runtime_s"].to_numpy(dtype=float)
    average = _weighted(values, weights)
    if not np.isfinite(average):
        raise ValueError(f"there is no {metric} in the slices that count")
    pairs = zip(np.array_split(values, WINDOW), np.array_split(weights, WINDOW), strict=True)
    blocks = [_weighted(v, w) for v, w in pairs if w.sum() > 0]
    steady = len(blocks) == WINDOW and min(blocks) > 0 and determine(blocks).steady
    return Level(average, min(blocks), max(blocks), steady, len(window), tuple(blocks))


def find_cliff(slices: pd.DataFrame, capacity_bytes: int, least_drop: float = LEAST_DROP) -> Cliff | None:
    """The cliff of a soak, or None where IOPS do not fall by `least_drop` for good; `slices` are rows of `cells`
    in order.

    The fall at a place is the mean log IOPS of the slices before it, less the highest mean of as many slices anywhere
    after it, so that nothing counts that comes back. Nor does a level that comes and goes: below the middle of both
    means the drive must be for `LONGER` times as long after the fall as it ever was before, and above it never again
    for as long. Means are of five slices; where no fall of these is one, of ten, of twenty …: a sharp fall is found
    where it is, a gradual one where it is steepest. Of several falls the first is the cliff. How long the soak goes on
    at its level does not move it, as it is no fit to the whole course.
    """
    cut = _first_fall(np.log(np.maximum(slices["iops"].to_numpy(dtype=float), 1.0)), float(np.log(least_drop)))
    if cut is None:
        return None
    before = level(slices.iloc[:cut], "iops").average
    after = level(saturated_slices(slices.iloc[cut:], whole=len(slices)), "iops").average
    if before < least_drop * after * (1 - _ROUNDING):
        return None
    last = slices.iloc[cut - 1]
    written = int(last["bytes_written_total"])
    return Cliff(
        time_s=float(last["elapsed_s"] + last["runtime_s"] - slices["elapsed_s"].iloc[0]),
        bytes_written=written,
        drive_fills=written / capacity_bytes,
        iops_before=before,
        iops_after=after,
    )


def _first_fall(course: npt.NDArray[np.float64], least: float) -> int | None:
    """Slices before the first fall of `course` for good, by `least`, at the finest scale that has one."""
    if len(course) <= LASTING:
        return None
    scatter = float(np.median(np.abs(np.diff(course)))) / (0.6745 * np.sqrt(2))  # of one slice, if it is normal
    width = WINDOW
    while True:
        cuts, before, after, highest, error = _around(course, width)
        told = len(highest)
        enough = before[:told] - highest >= np.maximum(least * (1 - _ROUNDING), _CERTAIN * scatter * error)
        edges = np.flatnonzero(np.diff(np.r_[False, enough, False].astype(np.int8)))
        for begin, end in edges.reshape(-1, 2):
            # what is sharper at the place after the last that can be told came too late to last
            at = begin + int(np.argmax((before - after)[begin : end + (end == told)]))
            if at < told and _for_good(course, cuts[at], (before[at] + highest[at]) / 2):
                return int(cuts[at])
        if 2 * width > len(course):
            return None
        width *= 2


def _around(course: npt.NDArray[np.float64], width: int) -> tuple[npt.NDArray[Any], ...]:
    """Cuts, as slices before them, with the means before and after; but for the last of them also the highest mean of
    all that follow, and the standard error of a fall in units of a slice's scatter."""
    total = np.r_[0.0, course.cumsum()]
    cuts = np.arange(1, len(course) - max(LASTING, min(width, len(course)) // 2) + 2)
    low, high = np.maximum(cuts - width, 0), np.minimum(cuts + width, len(course))
    before = (total[cuts] - total[low]) / (cuts - low)
    after = (total[high] - total[cuts]) / (high - cuts)
    error = np.sqrt(1 / (cuts - low) + 1 / (high - cuts))
    return cuts, before, after, np.maximum.accumulate(after[-2::-1])[::-1], error[:-1]


def _for_good(course: npt.NDArray[np.float64], cut: int, middle: float) -> bool:
    """Whether `course` is below `middle` for much longer after `cut` than it ever was before, and never again above it
    for as long as it was before."""
    low = course < middle
    stays = _longest(low[cut:]) >= LONGER * _longest(low[:cut])
    return stays and _longest(~low[cut:]) < _longest(~low[:cut])


def _longest(flags: npt.NDArray[np.bool_]) -> int:
    """Length of the longest stretch of which more than two thirds are True: a single slice breaks none (ours)."""
    excess = np.r_[0, np.cumsum(np.where(flags, 1, -2))]
    # such a stretch has a larger excess at its end than at its begin: the longest has the first begin that is lower
    first = np.searchsorted(-np.minimum.accumulate(excess), -excess, side="right")
    return max(int((np.arange(len(excess)) - first).max()), 0)


def _weighted(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    counted = weights > 0
    if not counted.any():
        return float("nan")
    return float(np.average(values[counted], weights=weights[counted]))
