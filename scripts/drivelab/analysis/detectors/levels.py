"""What each cell of a recording comes to, for detectors that compare cells with each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pandas as pd

LOAD = [
    "pattern", "read_share_pct", "block_size_bytes", "block_size_max_bytes", "threads", "queue_depth",
    "alignment_offset_bytes", "range_bytes", "range_share", "segments", "rate_iops", "entropy", "filled",
]  # fmt: skip
"""Columns that tell the load of a cell, all of which but one must be alike for two cells to differ in that one."""


def cell_levels(counted: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """A row for each cell of a single workload: cell_label, the columns of `LOAD`, and iops.

    `counted` are the rows of each that count. The median of rounds that are repeats, of a soak the average over time of
    its slices. Not cells of a phase, of a composite workload or beside another one.
    """
    rows = []
    for one in counted:
        first = one.iloc[0]
        if pd.notna(first["phase"]) or pd.notna(first["beside"]) or first["pattern"] == "composite":
            continue
        soak = first["kind"] == "soak"
        iops = (one["iops"] * one["runtime_s"]).sum() / one["runtime_s"].sum() if soak else one["iops"].median()
        rows.append({"cell_label": first["cell_label"], **first[LOAD].to_dict(), "iops": float(iops)})
    return pd.DataFrame(rows, columns=["cell_label", *LOAD, "iops"])


def alike_but(levels: pd.DataFrame, *columns: str) -> list[pd.DataFrame]:
    """Groups of several cells whose loads differ in `columns` only."""
    same = levels[[one for one in LOAD if one not in columns]].astype(object)
    places: defaultdict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, load in enumerate(same.where(same.notna(), None).itertuples(index=False, name=None)):
        places[load].append(place)
    return [levels.iloc[one] for one in places.values() if len(one) > 1]
