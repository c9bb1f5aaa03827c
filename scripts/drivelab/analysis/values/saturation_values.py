"""Analyse soaks: the slices that count, and of write saturation (WSAT) the cliff and the level at the end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.criteria.settling import Floats
from drivelab.criteria.soundness import sound
from drivelab.criteria.steady_state import WINDOW, determine


@dataclass(frozen=True)
class CountedSlices:
    """The slices that count, in order, and words to describe them."""

    slices: pd.DataFrame
    statistic: str
    """Name of the average over these slices."""
    words: str
    """Name of the slices, for other statistics."""
    by_own_rule: bool = False
    """Whether the soak's own stop rule found these slices steady."""


def counted_slices(soak: pd.DataFrame) -> CountedSlices:
    """Return the slices that count of successive soaks of one workload.

    `soak` has rows in order, with the column `saturates`. If its own stop rule found steady state, the slices of that
    window count. If it saturates the drive (see `saturating`), the last fifth counts. Otherwise all slices count,
    because the protocol sets the length of the soak.
    """
    inside = soak[soak["in_window"].astype(bool)]
    if len(inside):
        last = inside[inside["step"] == inside["step"].iloc[-1]]
        return CountedSlices(last, "steady-state window", "steady-state window", by_own_rule=True)
    if soak["saturates"].all():
        return CountedSlices(saturated_slices(soak), "post-saturation average", "saturated slices")
    return CountedSlices(soak, "average of the whole soak", "whole soak")


def lacking(cells: pd.DataFrame) -> pd.Series:
    """Flag the rows of soaks whose steady-state window lacks a slice.

    `cells` is table `cells` with its unsound rows. A window lacks a slice that is unsound or missing.
    """
    windows = cells[(cells["kind"] == "soak") & cells["in_window"].astype(bool)]
    if windows.empty:
        return pd.Series(False, index=cells.index)
    by_step = ["recording", "step"]
    rounds = windows.groupby(by_step)["round"]
    length = rounds.max() - rounds.min() + 1
    lacks = sound(windows).groupby(by_step).size().reindex(length.index, fill_value=0) < length
    steps = pd.MultiIndex.from_frame(cells[by_step])
    return pd.Series(steps.isin(lacks.index[lacks]) & (cells["kind"] == "soak").to_numpy(), index=cells.index)


def saturating(measured: pd.DataFrame) -> pd.Series:
    """Flag the sound rows of table `cells` whose workload saturates a fresh drive.

    It does if the drive was not filled, the step is not part of a phase, and no other workload was measured before.
    """
    fresh = ~measured["filled"].astype(bool) & measured["phase"].isna() & measured["point"].isna()
    if not fresh.any():
        return fresh
    firsts = measured.groupby(["recording", "workload"], sort=False)["step"].min()
    # the first two workloads of a recording suffice: another workload came before each later one
    ordered = firsts.sort_values(kind="stable").groupby(level="recording", sort=False)
    first, second = (ordered.nth(number).reset_index("workload") for number in (0, 1))
    recordings = measured["recording"]
    is_first = measured["workload"].astype(object) == recordings.map(first["workload"]).astype(object)
    others = recordings.map(second["step"]).astype(float).where(is_first, recordings.map(first["step"]))
    begins = measured.groupby(["recording", "cell_label"], sort=False)["step"].transform("min")
    later = others.notna() & (others < begins)
    return fresh & ~later


LAST_SHARE = 0.2
"""Share of a soak, at its end, that counts as saturated (ours: the PTS leaves the choice to the reader of the plot)."""
LEAST_DROP = 1.25
"""Smallest factor between the levels before and after a cliff (ours)."""
LASTING = 3
"""Fewest slices that a lasting fall must cover (ours)."""
LONGER = 3
"""A fall is permanent if the low level lasts at least this many times as long as any earlier low level that recovered
(ours)."""
_CERTAIN = 5.0
"""Standard errors by which a fall must exceed the scatter of the slices: in thousands of slices, scatter alone often
looks like a fall (ours)."""
_ROUNDING = 1e-9
"""Tolerance so that a fall by exactly the least drop counts despite rounding."""


@dataclass(frozen=True)
class Level:
    """The average of a metric over a window of slices, in the unit of the metric."""

    average: float
    steady: bool
    """Whether the five blocks meet the PTS rule for five rounds."""
    slices: int
    """Number of slices in the window."""
    blocks: tuple[float, ...]
    """Averages of five equal blocks of slices in order; with fewer than five slices, each slice is a block."""


@dataclass(frozen=True)
class Cliff:
    """The point where a soak leaves the level of the fresh drive permanently."""

    time_s: float
    """Time from the start of the first slice to the end of the last slice before the cliff."""
    bytes_written: int
    """Bytes written by the host from the end of conditioning to the cliff."""
    drive_fills: float
    """`bytes_written` in units of the user capacity."""
    iops_before: float
    """Average over the slices before the cliff."""
    iops_after: float
    """Average over the saturated slices after the cliff."""


def saturated_slices(slices: pd.DataFrame, last_share: float = LAST_SHARE, whole: int | None = None) -> pd.DataFrame:
    """Return the last `last_share` of the slices, at least five if there are.

    `whole` is the number of slices of the whole soak if `slices` is only its end.
    """
    return slices.tail(max(int((whole or len(slices)) * last_share), WINDOW))


def post_saturation(slices: pd.DataFrame, metric: str, last_share: float = LAST_SHARE) -> Level:
    """Return the level of `metric` over the saturated slices, steady or not. Arguments and errors: see `level`."""
    return level(saturated_slices(slices, last_share), metric)


def level(window: pd.DataFrame, metric: str) -> Level:
    """Return the level of a metric over the slices of a window.

    `metric` is iops, bandwidth_mib_s or mean_latency_us; `window` has rows of `cells` in order.
    Rates are averaged over time, latency over I/Os: each slice is weighted by its runtime or its I/Os. Raises
    ValueError without any slice, or without any I/O for a latency.
    """
    if window.empty:
        raise ValueError("a level needs at least one slice")
    values = window[metric].to_numpy(dtype=float)
    if metric == "mean_latency_us":
        weights = (window["read_ios"] + window["write_ios"]).to_numpy(dtype=float)
    else:
        weights = window["runtime_s"].to_numpy(dtype=float)
    known = weights > 0
    if not known.any() or not np.isfinite(average := np.average(values[known], weights=weights[known])):
        raise ValueError(f"the slices that count have no {metric}")
    parts = [part[known[part]] for part in np.array_split(np.arange(len(values)), WINDOW)]
    blocks = [float(np.average(values[part], weights=weights[part])) for part in parts if len(part)]
    steady = len(blocks) == WINDOW and min(blocks) > 0 and determine(blocks).steady
    return Level(float(average), steady, len(window), tuple(blocks))


def find_cliff(slices: pd.DataFrame, capacity_bytes: int, least_drop: float = LEAST_DROP) -> Cliff | None:
    """Return the cliff of a soak: a permanent fall of IOPS by `least_drop`, or None.

    `slices` are rows of `cells` in order. The fall at a cut is the mean log IOPS of the slices before it, less the
    highest mean of equally many slices anywhere after it. So a fall that recovers does not count. A level that comes
    and goes does not count either. Below the middle of both means, the drive must stay `LONGER` times as long after the
    fall as it ever did before. Above the middle, it must never stay as long again as it did before the fall.

    Means are over five slices; if there is no cliff at this scale, over ten, twenty and so on. A sharp fall is found
    exactly, a gradual one where it is steepest. The first permanent fall is the cliff. The length of the soak after
    the cliff does not move it, because nothing is fitted to the whole course.
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


def _first_fall(course: Floats, least: float) -> int | None:
    """Return the number of slices before the first permanent fall by `least`. The finest scale that has one decides."""
    if len(course) <= LASTING:
        return None
    scatter = float(np.median(np.abs(np.diff(course)))) / (0.6745 * np.sqrt(2))  # of one slice, for normal scatter
    width = WINDOW
    while True:
        cuts, before, after, highest, error = _around(course, width)
        judged = len(highest)
        enough = before[:judged] - highest >= np.maximum(least * (1 - _ROUNDING), _CERTAIN * scatter * error)
        edges = np.flatnonzero(np.diff(np.r_[False, enough, False].astype(np.int8)))
        for begin, end in edges.reshape(-1, 2):
            # include the cut after the last judged one: a fall that is sharpest there came too late to last
            at = begin + int(np.argmax((before - after)[begin : end + (end == judged)]))
            if at < judged and _is_permanent(course, cuts[at], (before[at] + highest[at]) / 2):
                return int(cuts[at])
        if 2 * width > len(course):
            return None
        width *= 2


def _around(course: Floats, width: int) -> tuple[npt.NDArray[Any], ...]:
    """Return for each cut: the slices before it, and the means before and after it.

    Two more arrays leave out the last cut: the highest of all later means, and the standard error of a fall in units of
    the scatter of a slice.
    """
    total = np.r_[0.0, course.cumsum()]
    cuts = np.arange(1, len(course) - max(LASTING, min(width, len(course)) // 2) + 2)
    low, high = np.maximum(cuts - width, 0), np.minimum(cuts + width, len(course))
    before = (total[cuts] - total[low]) / (cuts - low)
    after = (total[high] - total[cuts]) / (high - cuts)
    error = np.sqrt(1 / (cuts - low) + 1 / (high - cuts))
    return cuts, before, after, np.maximum.accumulate(after[-2::-1])[::-1], error[:-1]


def _is_permanent(course: Floats, cut: int, middle: float) -> bool:
    """Say whether `course` falls below `middle` permanently at `cut`.

    After the cut it must stay below for much longer than it ever did before, and must never stay above as long as it
    did before.
    """
    low = course < middle
    stays = _longest(low[cut:]) >= LONGER * _longest(low[:cut])
    return stays and _longest(~low[cut:]) < _longest(~low[:cut])


def _longest(flags: npt.NDArray[np.bool_]) -> int:
    """Return the length of the longest stretch with more than two thirds True. Single slices do not break it (ours)."""
    excess = np.r_[0, np.cumsum(np.where(flags, 1, -2))]
    # the excess of such a stretch is larger at its end than at its begin; the longest begins at the first lower excess
    first = np.searchsorted(-np.minimum.accumulate(excess), -excess, side="right")
    return max(int((np.arange(len(excess)) - first).max()), 0)
