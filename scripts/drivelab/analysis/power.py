"""IOPS per watt: what a drive does for the power that it draws."""

from __future__ import annotations

import pandas as pd

IOPS_PER_WATT = "iops_per_watt"
_WORDS = {"meter": "power by the meter", "drive": "power by the drive's own sensor"}


def with_iops_per_watt(cells: pd.DataFrame) -> pd.DataFrame:
    """Rows of table `cells` with the column `iops_per_watt`: IOPS by the mean power over the cell, else NaN.

    The telemetry takes the power meter before the drive's own sensor; host and processors do not count.
    """
    power_w = cells["power_w"].astype(float)
    return cells.assign(**{IOPS_PER_WATT: cells["iops"] / power_w.where(power_w > 0)})


def power_words(cells: pd.DataFrame) -> str | None:
    """What measured the power of these cells, for a statistic; None where it was not measured over all of them.

    Values of different sources are not compared: a meter counts the losses of the supply too.
    """
    if cells[IOPS_PER_WATT].isna().any():
        return None
    return " and ".join(_WORDS[source] for source in sorted(cells["power_source"].unique()))
