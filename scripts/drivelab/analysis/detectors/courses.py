"""Compute the rate of a recording over time, for several detectors."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.criteria.settling import Floats

LOCAL = 61
"""Samples that define the usual rate at a time: a minute of one-second samples. A slow spell of up to half a minute
stands out, and the usual rate follows a change of level within half a minute (ours)."""
SLOWEST_SAMPLE_S = 5.0
"""Slices longer than this are too coarse for detectors of events that last seconds (ours)."""

_PLACE = ["step", "round", "cell"]


def rates_of_soaks(series: pd.DataFrame) -> pd.DataFrame:
    """Return the rates of the soaks in table `series`: reads and writes together.

    Columns: step, round, cell, time_s, iops.
    """
    soaks = series[series["kind"] == "soak"]
    return soaks.groupby([*_PLACE, "time_s"], as_index=False)["iops"].sum()


def seconds(soak: pd.DataFrame, rates: pd.DataFrame) -> pd.DataFrame:
    """Return the course of a soak in time order: reads and writes together.

    Columns: begin_s, end_s (seconds of the measurement), iops.
    `soak` has its rows of table `cells`; `rates` is from `rates_of_soaks`. The course comes from the one-second series,
    or else from slices of up to `SLOWEST_SAMPLE_S`; without either it is empty.
    """
    samples = rates.merge(soak[[*_PLACE, "elapsed_s"]], on=_PLACE).sort_values(["elapsed_s", "time_s"])
    if len(samples):
        end_s = samples["elapsed_s"] + samples["time_s"]
        return pd.DataFrame({"begin_s": end_s - 1.0, "end_s": end_s, "iops": samples["iops"]}).reset_index(drop=True)
    slices = soak[soak["runtime_s"] <= SLOWEST_SAMPLE_S]
    end_s = slices["elapsed_s"] + slices["runtime_s"]
    return pd.DataFrame({"begin_s": slices["elapsed_s"], "end_s": end_s, "iops": slices["iops"]}).reset_index(drop=True)


def local_median(values: Floats) -> Floats:
    """Return the median of the LOCAL values around each value, fewer at the ends."""
    rolling = pd.Series(values).rolling(LOCAL, center=True, min_periods=1)
    return np.asarray(rolling.median(), dtype=float)


def local_quantile(values: Floats, quantile: float) -> Floats:
    """Return a quantile of the LOCAL values around each value."""
    rolling = pd.Series(values).rolling(LOCAL, center=True, min_periods=1)
    return np.asarray(rolling.quantile(quantile, interpolation="higher"), dtype=float)


def relative_course(loops: pd.DataFrame, courses: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the rates of a recording relative to the usual rate, in time order.

    Columns: begin_s, end_s, relative (1: the usual rate at this time), of_whole (1: the usual rate of the soak or
    loop). The usual rate is the local median for a soak (`courses` are from `seconds`), and the median of its rounds
    for a cell of a loop. This makes rates of different workloads comparable.
    """
    parts = [
        _relative(course, local_median(course["iops"].to_numpy(dtype=float)), course["iops"].median())
        for course in courses
    ]
    if len(loops):
        usual = loops.groupby(["step", "cell_label"])["iops"].transform("median").to_numpy(dtype=float)
        end_s = loops["elapsed_s"] + loops["runtime_s"]
        cells = pd.DataFrame({"begin_s": loops["elapsed_s"], "end_s": end_s, "iops": loops["iops"]})
        parts.append(_relative(cells, usual, usual))
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame({"begin_s": [], "end_s": [], "relative": [], "of_whole": []}, dtype=float)
    return pd.concat(parts).sort_values("begin_s", kind="stable").reset_index(drop=True)


def _relative(course: pd.DataFrame, usual: Floats, usual_of_whole: Floats | float) -> pd.DataFrame:
    iops, of_whole = course["iops"].to_numpy(dtype=float), np.broadcast_to(usual_of_whole, len(course))
    known = (usual > 0) & (of_whole > 0)
    times = course.loc[known, ["begin_s", "end_s"]]
    return times.assign(relative=iops[known] / usual[known], of_whole=iops[known] / of_whole[known])


def spells(flags: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return (first, end) of each unbroken stretch of True. `end` is the index after the last."""
    edges = np.flatnonzero(np.diff(np.r_[False, flags, False].astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def robust_sigma(values: Floats) -> float:
    """Estimate a standard deviation from the median absolute deviation.

    The factor is 1.4826 (Hampel, Journal of the American Statistical Association 69, 1974).
    """
    return float(1.4826 * np.median(np.abs(values - np.median(values))))


LOAD = [
    "pattern", "read_share_pct", "block_size_bytes", "block_size_max_bytes", "threads", "queue_depth",
    "alignment_offset_bytes", "range_bytes", "range_start", "range_share", "segments", "rate_iops", "entropy", "filled",
]  # fmt: skip
"""Columns that define the load of a cell."""
CERTAIN = 4.0
"""Combined standard errors by which levels must differ at least. The scatter of five rounds is known only to a third,
and a recording has many pairs of cells (ours)."""
STEADY_PCT = 10.0
"""The deviation that the PTS allows a steady rate: smaller effects are no findings (ours)."""
WITHIN_SCATTER = ", which is within the scatter of the rounds"
"""What is said of levels that differ by less."""


def cell_levels(counted: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each cell of a single workload.

    Columns: cell_label, those of `LOAD`, iops, relative_error.
    `counted` has the rows of each cell that count. `iops` is the median of the rounds of a loop, or the time average of
    the slices of a soak. `relative_error` is its standard error as a fraction, from the scatter of rounds or slices.
    Cells of a phase, and beside another workload, are left out.
    """
    rows = []
    for cell in counted:
        first = cell.iloc[0]
        if pd.notna(first["phase"]) or pd.notna(first["beside"]):
            continue
        soak = first["kind"] == "soak"
        iops = (cell["iops"] * cell["runtime_s"]).sum() / cell["runtime_s"].sum() if soak else cell["iops"].median()
        level = {"iops": float(iops), "relative_error": relative_error(cell["iops"], of_median=not soak)}
        rows.append({"cell_label": first["cell_label"], **first[LOAD].to_dict(), **level})
    return pd.DataFrame(rows, columns=["cell_label", *LOAD, "iops", "relative_error"])


def relative_error(values: pd.Series, *, of_median: bool) -> float:
    """Return the standard error of the mean of `values` as a fraction of it.

    Values are NaN for a single value or no I/O.
    For normal values the standard error of the median (`of_median`) is larger by sqrt(pi / 2) (Kenney and Keeping,
    Mathematics of Statistics, 1962).
    """
    mean = float(values.mean())
    if len(values) < 2 or not mean > 0:
        return float("nan")
    factor = float(np.sqrt(np.pi / 2)) if of_median else 1.0
    return factor * float(values.std(ddof=1)) / (mean * float(np.sqrt(len(values))))


def combined(*errors: float) -> float:
    """Return the standard error of the difference of levels with these errors.

    An unknown error (NaN) counts as zero, so for single values only the thresholds decide.
    """
    return float(np.sqrt(np.nansum(np.square(errors))))


def alike_but(levels: pd.DataFrame, *columns: str) -> list[pd.DataFrame]:
    """Return groups of at least two cells whose loads differ only in `columns`."""
    same = levels.groupby([column for column in LOAD if column not in columns], sort=False, dropna=False)
    return [group for _, group in same if len(group) > 1]
