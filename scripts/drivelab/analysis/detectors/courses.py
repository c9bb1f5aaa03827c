"""The rate of a recording over time: what detectors look for dips, slow spells and disturbances in."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

LOCAL = 61
"""Samples that tell what rate is usual at a time: a minute of one-second samples, so that a slow spell of up to half of
it stands out, and a change of level is followed within as much (ours)."""
SLOWEST_SAMPLE_S = 5.0
"""Slices longer than this show no course: a detector of what lasts seconds has nothing to look at (ours)."""

Floats = npt.NDArray[np.float64]


_PLACE = ["step", "round", "cell"]


def rates_of_soaks(series: pd.DataFrame) -> pd.DataFrame:
    """Columns step, round, cell, time_s and iops (reads and writes) of the soaks in the table of a recording."""
    soaks = series[series["kind"] == "soak"]
    return soaks.groupby([*_PLACE, "time_s"], as_index=False)["iops"].sum()


def seconds(soak: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Columns begin_s, end_s (of the measurement) and iops (reads and writes) of a soak, in the order of time.

    `soak` are its rows of table `cells`, `rates` those of the recording's soaks. From the one-second series, else from
    slices of up to `SLOWEST_SAMPLE_S`, else without rows.
    """
    found = rates.merge(soak[[*_PLACE, "elapsed_s"]], on=_PLACE).sort_values(["elapsed_s", "time_s"])
    if len(found):
        end_s = found["elapsed_s"] + found["time_s"]
        return pd.DataFrame({"begin_s": end_s - 1.0, "end_s": end_s, "iops": found["iops"]}).reset_index(drop=True)
    slices = soak[soak["runtime_s"] <= SLOWEST_SAMPLE_S]
    end_s = slices["elapsed_s"] + slices["runtime_s"]
    return pd.DataFrame({"begin_s": slices["elapsed_s"], "end_s": end_s, "iops": slices["iops"]}).reset_index(drop=True)


def local_median(values: Floats, width: int = LOCAL) -> Floats:
    """Of the `width` values around each, fewer at both ends."""
    rolling = pd.Series(values).rolling(width, center=True, min_periods=1)
    return np.asarray(rolling.median(), dtype=float)


def local_quantile(values: Floats, quantile: float, width: int = LOCAL) -> Floats:
    """As `local_median`, of another part of the values."""
    rolling = pd.Series(values).rolling(width, center=True, min_periods=1)
    return np.asarray(rolling.quantile(quantile, interpolation="higher"), dtype=float)


def relative_course(loops: pd.DataFrame, courses: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Columns begin_s, end_s, relative (1: as usual at the time), of_whole (1: as usual in the soak or loop) of a
    recording, in the order of time.

    Of a soak, whose course is as `seconds` has it, what is usual at a time is the local median; of a cell of a loop,
    the median of its rounds. Rates of different workloads can so be put beside each other.
    """
    parts = [_relative(one, local_median(one["iops"].to_numpy(dtype=float)), one["iops"].median()) for one in courses]
    if len(loops):
        usual = loops.groupby(["step", "cell_label"])["iops"].transform("median").to_numpy(dtype=float)
        end_s = loops["elapsed_s"] + loops["runtime_s"]
        cells = pd.DataFrame({"begin_s": loops["elapsed_s"], "end_s": end_s, "iops": loops["iops"]})
        parts.append(_relative(cells, usual, usual))
    parts = [one for one in parts if len(one)]
    if not parts:
        return pd.DataFrame({"begin_s": [], "end_s": [], "relative": [], "of_whole": []}, dtype=float)
    return pd.concat(parts).sort_values("begin_s", kind="stable").reset_index(drop=True)


def _relative(course: pd.DataFrame, usual: Floats, usual_of_whole: Floats | float) -> pd.DataFrame:
    iops, of_whole = course["iops"].to_numpy(dtype=float), np.broadcast_to(usual_of_whole, len(course))
    known = (usual > 0) & (of_whole > 0)
    times = course.loc[known, ["begin_s", "end_s"]]
    return times.assign(relative=iops[known] / usual[known], of_whole=iops[known] / of_whole[known])


def spells(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First index and the one after the last of each unbroken stretch of True."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False].astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def robust_sigma(values: Floats) -> float:
    """Standard deviation of the bulk of normal values: 1.4826 times the median absolute deviation (Hampel, Journal of
    the American Statistical Association 69, 1974)."""
    return float(1.4826 * np.median(np.abs(values - np.median(values))))
