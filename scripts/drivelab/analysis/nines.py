"""Latency between the nines: the quantiles that a quality of service is told by, and the curve that joins them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.latency import NINES, exceedance, percentiles_us


def nines(bins: pd.DataFrame) -> pd.DataFrame:
    """Columns quantile_pct (50, 90, 99 … 99.9999), latency_us and ios_above, how many I/Os tell it.

    From merged bins. A quantile that fewer than one I/O lies above has no row, as it would be the slowest I/O by
    another name; the median always has. Raises ValueError for bins without any I/O.
    """
    total = int(bins["count"].sum())
    percents = [one for one in NINES.values() if one <= 50 or total * (100 - one) / 100 >= 1 - 1e-9]
    return pd.DataFrame(
        {
            "quantile_pct": percents,
            "latency_us": percentiles_us(bins, percents),
            "ios_above": [total * (100 - percent) / 100 for percent in percents],
        }
    )


def between_the_nines(bins: pd.DataFrame) -> pd.DataFrame:
    """The curve: columns quantile_pct, nines (2 for 99 %, 3 for 99.9 % …), latency_us, a row for each latency met.

    It is the exceedance function with its axis turned: `nines` is the negative logarithm of the share of I/Os that took
    longer. The slowest latency has no I/O above it, hence no place on such an axis: it is left out. Empty for bins
    without any I/O.
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
