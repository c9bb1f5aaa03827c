"""Telemetry put beside the rates of a recording."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from drivelab.analysis.detectors.recording import Recording

FARTHEST_S = 30.0
"""A sample says nothing of times further away: temperature is read every few seconds, and moves over minutes (ours)."""

Values = npt.NDArray[np.float64]


def samples(recording: Recording) -> pd.DataFrame:
    """Rows of table `telemetry` with at_s, seconds of the measurement, in their order; empty without cells to tell."""
    cells, telemetry = recording.cells, recording.telemetry
    if cells.empty or telemetry.empty:
        return telemetry.assign(at_s=pd.Series(dtype=float)).head(0)
    began = (cells["started"] - pd.to_timedelta(cells["elapsed_s"], unit="s")).median()
    at_s = (telemetry["time"] - began).dt.total_seconds()
    return telemetry.assign(at_s=at_s).sort_values("at_s").reset_index(drop=True)


def beside(
    times_s: Values, told: pd.DataFrame, column: str, direction: Literal["backward", "forward", "nearest"]
) -> Values:
    """What `column` of `told` (with at_s, in order) says at each of the times, which are in order; NaN where nothing.

    `forward` takes the next sample, for what is told of the time since an earlier one.
    """
    known = told.loc[told[column].notna(), ["at_s", column]]
    if known.empty or not len(times_s):
        return np.full(len(times_s), np.nan)
    found = pd.merge_asof(
        pd.DataFrame({"at_s": times_s}), known.astype(float), on="at_s", direction=direction, tolerance=FARTHEST_S
    )
    return np.asarray(found[column], dtype=float)


def chance_of_fall(slow: Values, usual: Values) -> float:
    """Of values that low by chance, were both alike (Mann and Whitney, Annals of Mathematical Statistics 18, 1947)."""
    return float(stats.mannwhitneyu(slow, usual, alternative="less").pvalue)
