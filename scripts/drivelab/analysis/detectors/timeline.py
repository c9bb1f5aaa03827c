"""Align telemetry with the rates of a recording."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from drivelab.analysis.detectors.detection import Recording

FARTHEST_S = 30.0
"""Largest distance of a sample that applies to a time: temperature is read every few seconds and changes over minutes
(ours)."""

Values = npt.NDArray[np.float64]


def samples(recording: Recording) -> pd.DataFrame:
    """Return table `telemetry` in time order with at_s, seconds of the measurement.

    The result is empty without cells.
    """
    cells, telemetry = recording.cells, recording.telemetry
    if cells.empty or telemetry.empty:
        return telemetry.assign(at_s=pd.Series(dtype=float)).head(0)
    began = (cells["started"] - pd.to_timedelta(cells["elapsed_s"], unit="s")).median()
    at_s = (telemetry["time"] - began).dt.total_seconds()
    return telemetry.assign(at_s=at_s).sort_values("at_s").reset_index(drop=True)


def beside(
    times_s: Values, telemetry: pd.DataFrame, column: str, direction: Literal["backward", "forward", "nearest"]
) -> Values:
    """Return the value of a telemetry column at each time, shape (n,).

    Values are NaN without a sample within FARTHEST_S.
    `times_s` and `telemetry` (from `samples`) are in order. `forward` takes the next sample, for columns that describe
    the time since the previous sample.
    """
    known = telemetry.loc[telemetry[column].notna(), ["at_s", column]]
    if known.empty or not len(times_s):
        return np.full(len(times_s), np.nan)
    matched = pd.merge_asof(
        pd.DataFrame({"at_s": times_s}), known.astype(float), on="at_s", direction=direction, tolerance=FARTHEST_S
    )
    return np.asarray(matched[column], dtype=float)


def chance_of_fall(slow: Values, usual: Values) -> float:
    """Return the chance of such a fall if both samples have one distribution.

    The test is that of Mann and Whitney (Annals of Mathematical Statistics 18, 1947).
    """
    return float(stats.mannwhitneyu(slow, usual, alternative="less").pvalue)
