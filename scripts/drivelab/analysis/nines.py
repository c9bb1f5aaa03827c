"""Compute latency at and between the nines: quantiles and curve."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.latency import NINES, exceedance, percentiles_us


def nines(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the quantiles of merged bins.

    Columns: quantile_pct (50, 90, 99 … 99.9999), latency_us, ios_above.
    `ios_above` is the number of I/Os above the quantile. With fewer than one, the quantile would be just the slowest
    I/O and has no row; the median always has a row. Raises ValueError for bins without I/O.
    """
    total = int(bins["count"].sum())
    percents = [percent for percent in NINES.values() if percent <= 50 or total * (100 - percent) / 100 >= 1 - 1e-9]
    return pd.DataFrame(
        {
            "quantile_pct": percents,
            "latency_us": percentiles_us(bins, percents),
            "ios_above": [total * (100 - percent) / 100 for percent in percents],
        }
    )


def between_the_nines(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the curve: quantile_pct, nines (2 for 99 %, 3 for 99.9 % …), latency_us.

    A row per observed latency.
    `nines` is the negative decimal logarithm of the share of I/Os that took longer. The slowest latency is left out: no
    I/O took longer, so it has no place on this axis. Empty for bins without I/O.
    """
    curve = exceedance(bins)
    curve = curve[curve["share_above"] > 0]
    return pd.DataFrame(
        {
            "quantile_pct": 100 * (1 - curve["share_above"]),
            "nines": -np.log10(curve["share_above"].astype(float)),
            "latency_us": curve["latency_us"],
        }
    ).reset_index(drop=True)
