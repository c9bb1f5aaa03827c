"""Compute IOPS per watt."""

from __future__ import annotations

import pandas as pd

IOPS_PER_WATT = "iops_per_watt"
_WORDS = {"meter": "power by the meter", "drive": "power by the drive's own sensor"}


def with_iops_per_watt(cells: pd.DataFrame) -> pd.DataFrame:
    """Add the column `iops_per_watt` to rows of table `cells`; NaN without power.

    The telemetry prefers the power meter to the drive's own sensor; it excludes host and processors.
    """
    power_w = cells["power_w"].astype(float)
    return cells.assign(**{IOPS_PER_WATT: cells["iops"] / power_w.where(power_w > 0)})


def power_words(cells: pd.DataFrame) -> str | None:
    """Name the source of the power of these cells, for a statistic.

    The result is None unless all cells have power.
    Values of different sources are not compared: a meter includes the losses of the power supply.
    """
    if cells[IOPS_PER_WATT].isna().any():
        return None
    return " and ".join(_WORDS[source] for source in sorted(cells["power_source"].unique()))
