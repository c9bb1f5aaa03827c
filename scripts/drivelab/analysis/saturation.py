"""Write saturation: where a soak falls off its cliff, and what it settles at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.analysis.steady_state import WINDOW, determine

LAST_SHARE = 0.2
"""Part of a soak, at its end, that counts as saturated (ours: the PTS leaves the choice to the reader of
the plot)."""
LEAST_DROP = 1.25
"""Factor between the levels before and after from which a change is called a cliff (ours)."""


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
    """The one change of level that explains most of a soak's course."""

    time_s: float
    """From the start of the first slice to the end of the last one before the cliff."""
    bytes_written: int
    """By the host since the end of conditioning, up to the cliff."""
    drive_fills: float
    """`bytes_written` in user capacities."""
    iops_before: float
    iops_after: float
    """Geometric means of the slices on either side."""


def saturated_slices(slices: pd.DataFrame, last_share: float = LAST_SHARE) -> pd.DataFrame:
    """The window: the last `last_share` of the slices, five at the least, or all if there are fewer."""
    return slices.tail(max(int(len(slices) * last_share), WINDOW))


def post_saturation(slices: pd.DataFrame, metric: str, last_share: float = LAST_SHARE) -> Level:
    """What `metric` settles at: its level over the saturated slices; arguments and errors as for `level`."""
    return level(saturated_slices(slices, last_share), metric)


def level(window: pd.DataFrame, metric: str) -> Level:
    """`metric` (iops, bandwidth_mib_s, mean_latency_us) over slices that count, rows of `cells` in order.

    The average is over time for rates and over I/Os for latency: each slice counts by its runtime or its
    I/Os. Raises ValueError without any slice, or without any I/O in a latency's window.
    """
    if window.empty:
        raise ValueError("a soak without slices settles at nothing")
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
    """The cliff of a soak, or None where IOPS do not fall by `least_drop`; `slices` are rows of `cells`
    in order.

    Least-squares change point in log IOPS: of all ways to cut the soak in two, the one whose two levels
    leave the smallest squared error. A gradual fall is put in its middle, of several falls the one that
    explains most.
    """
    if len(slices) < 2:
        return None
    course = np.log(np.maximum(slices["iops"].to_numpy(dtype=float), 1.0))  # a slice that hung counts as 1 IOPS
    before = np.arange(1, len(course))
    after = len(course) - before
    left = course.cumsum()[:-1]
    right = course.sum() - left
    cut = int(np.argmax(left**2 / before + right**2 / after))  # largest between-level sum of squares
    iops_before, iops_after = np.exp(left[cut] / before[cut]), np.exp(right[cut] / after[cut])
    if iops_before < least_drop * iops_after:
        return None
    last = slices.iloc[cut]
    written = int(last["bytes_written_total"])
    return Cliff(
        time_s=float(last["elapsed_s"] + last["runtime_s"] - slices["elapsed_s"].iloc[0]),
        bytes_written=written,
        drive_fills=written / capacity_bytes,
        iops_before=float(iops_before),
        iops_after=float(iops_after),
    )


def _weighted(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    counted = weights > 0
    if not counted.any():
        return float("nan")
    return float(np.average(values[counted], weights=weights[counted]))
