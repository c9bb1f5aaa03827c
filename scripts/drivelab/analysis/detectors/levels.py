"""Compute the level (IOPS and error) of each cell of a recording."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pandas as pd

LOAD = [
    "pattern", "read_share_pct", "block_size_bytes", "block_size_max_bytes", "threads", "queue_depth",
    "alignment_offset_bytes", "range_bytes", "range_share", "segments", "rate_iops", "entropy", "filled",
]  # fmt: skip
"""Columns that define the load of a cell."""
CERTAIN = 4.0
"""Combined standard errors by which levels must differ at least. The scatter of five rounds is known only to a third,
and a recording has many pairs of cells (ours)."""


def cell_levels(counted: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return a row for each cell of a single workload.

    Columns: cell_label, those of `LOAD`, iops, relative_error.
    `counted` has the rows of each cell that count. `iops` is the median of the rounds of a loop, or the time average of
    the slices of a soak. `relative_error` is its standard error as a fraction, from the scatter of rounds or slices.
    Cells of a phase, of a composite workload, and beside another workload are left out.
    """
    rows = []
    for cell in counted:
        first = cell.iloc[0]
        if pd.notna(first["phase"]) or pd.notna(first["beside"]) or first["pattern"] == "composite":
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
    same = levels[[column for column in LOAD if column not in columns]].astype(object)
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, load in enumerate(same.where(same.notna(), None).itertuples(index=False, name=None)):
        places[load].append(place)
    return [levels.iloc[group] for group in places.values() if len(group) > 1]
