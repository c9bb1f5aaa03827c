"""What each cell of a recording comes to, for detectors that compare cells with each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pandas as pd

LOAD = [
    "pattern", "read_share_pct", "block_size_bytes", "block_size_max_bytes", "threads", "queue_depth",
    "alignment_offset_bytes", "range_bytes", "range_share", "segments", "rate_iops", "entropy", "filled",
]  # fmt: skip
"""Columns that tell the load of a cell, all of which but one must be alike for two cells to differ in that one."""
CERTAIN = 4.0
"""Combined standard errors by which levels must differ at least. Of five rounds the scatter is known to a third, and a
recording has many pairs of cells (ours)."""


def cell_levels(counted: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """A row for each cell of a single workload: cell_label, the columns of `LOAD`, iops, and relative_error.

    `counted` are the rows of each that count. The median of rounds that are repeats, of a soak the average over time of
    its slices. Not cells of a phase, of a composite workload or beside another one. `relative_error` is the standard
    error as a part of the level, by the scatter of the rounds or slices: see `relative_error`.
    """
    rows = []
    for one in counted:
        first = one.iloc[0]
        if pd.notna(first["phase"]) or pd.notna(first["beside"]) or first["pattern"] == "composite":
            continue
        soak = first["kind"] == "soak"
        iops = (one["iops"] * one["runtime_s"]).sum() / one["runtime_s"].sum() if soak else one["iops"].median()
        known = {"iops": float(iops), "relative_error": relative_error(one["iops"], of_median=not soak)}
        rows.append({"cell_label": first["cell_label"], **first[LOAD].to_dict(), **known})
    return pd.DataFrame(rows, columns=["cell_label", *LOAD, "iops", "relative_error"])


def relative_error(values: pd.Series, *, of_median: bool) -> float:
    """Standard error of the mean of `values` as a part of it; that of the median is larger by sqrt(pi / 2) if they are
    normal (Kenney and Keeping, Mathematics of Statistics, 1962). NaN, not known, for a single value, and for no I/O."""
    mean = float(values.mean())
    if len(values) < 2 or not mean > 0:
        return float("nan")
    factor = float(np.sqrt(np.pi / 2)) if of_median else 1.0
    return factor * float(values.std(ddof=1)) / (mean * float(np.sqrt(len(values))))


def combined(*errors: float) -> float:
    """Standard error of the difference of levels with these errors; those that are not known count as none, so that the
    thresholds alone judge single values."""
    return float(np.sqrt(np.nansum(np.square(errors))))


def alike_but(levels: pd.DataFrame, *columns: str) -> list[pd.DataFrame]:
    """Groups of several cells whose loads differ in `columns` only."""
    same = levels[[one for one in LOAD if one not in columns]].astype(object)
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, load in enumerate(same.where(same.notna(), None).itertuples(index=False, name=None)):
        places[load].append(place)
    return [levels.iloc[one] for one in places.values() if len(one) > 1]
