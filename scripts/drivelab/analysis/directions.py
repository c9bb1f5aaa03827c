"""Split cells with simultaneous read and write workloads into two rows."""

from __future__ import annotations

import pandas as pd

_RATES = ("iops", "bandwidth_mib_s", "mean_latency_us")
_OF_BOTH = (
    "max_latency_us",
    *(f"p{nines}_latency_us" for nines in ("50", "90", "99", "999", "9999", "99999", "999999")),
    "power_w",
)
"""Columns that cannot be attributed to one of the two workloads."""
_OTHER = {"read": "write", "write": "read"}


def by_direction(cells: pd.DataFrame) -> pd.DataFrame:
    """Split each cell that has a workload `beside` in two rows: reads and writes.

    `cells` have `cell_label`. The new column `direction` is read or write for split rows and null for others. A split
    row has the rates and mean latency of its direction, and a label that ends in it:
    `RND 8KiB 0/100, beside RND 8KiB 100/0 T2Q8, writes`. `measured_as` is the label of the cell itself. Columns that
    are known only for both workloads together, such as percentiles and power, are null.
    """
    whole = cells.assign(direction=None, measured_as=cells["cell_label"])
    double = whole["beside"].notna()
    if not double.any():
        return whole
    parts = [whole[~double], *(_only(whole[double], direction) for direction in ("write", "read"))]
    return pd.concat([part for part in parts if len(part)]).sort_index(kind="stable").reset_index(drop=True)


def _only(cells: pd.DataFrame, direction: str) -> pd.DataFrame:
    return cells.assign(
        direction=direction,
        cell_label=cells["cell_label"] + f", {direction}s",
        **{metric: cells[f"{direction}_{metric}"] for metric in _RATES},
        **dict.fromkeys(_OF_BOTH, float("nan")),
        **{f"{_OTHER[direction]}_ios": 0},
    )
