"""Many comparisons at once: p-values adjusted for how many there are.

Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57(1), 1995:
of all differences that are called so, the share that are none is at most the level on average. It holds for values that
rise and fall together too (Benjamini and Yekutieli, Annals of Statistics 29(4), 2001), as IOPS and bandwidth of a cell
do.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import stats


def adjusted(p_values: pd.Series, family: pd.Series) -> pd.Series:
    """p-values adjusted within each family, NaN where there is no p-value: it does not count as a comparison."""
    found = pd.Series(np.nan, index=p_values.index, dtype=float)
    for _, known in p_values.dropna().groupby(family, sort=False):
        found[known.index] = stats.false_discovery_control(known.to_numpy(dtype=float), method="bh")
    return found
