"""Compute latency distributions from fio's bins.

Percentiles come from merged bins, because an average of percentiles is not a percentile. A bin is 1/64 of an octave
wide and `latency_ns` is its middle, so every latency here is accurate to 0.8 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from drivelab.criteria.settling import Floats

NINES = {
    "p50_latency_us": 50.0,
    "p90_latency_us": 90.0,
    "p99_latency_us": 99.0,
    "p999_latency_us": 99.9,
    "p9999_latency_us": 99.99,
    "p99999_latency_us": 99.999,
    "p999999_latency_us": 99.9999,
}
"""Percent of each percentile metric: the usual "nines"."""
HALF_BIN = 1 / 128
"""Largest relative error of a latency that is the middle of its bin."""
FEWEST_BEYOND = 10
"""I/Os beyond a percentile that a value needs: with fewer, intervals of p99.99 covered 69 to 92 %, not 95 %."""


def has_ios_beyond(ios: float, percent: float, fewest: int = 1) -> bool:
    """Return whether `fewest` I/Os lie beyond a percentile; without one, it would be just the slowest I/O.

    The median always has its I/Os.
    """
    return percent <= 50 or ios * (100 - percent) / 100 >= fewest - 1e-9


def merge_bins(bins: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Add up bins: columns `by`, latency_ns (ascending), count."""
    return bins.groupby([*by, "latency_ns"], as_index=False, observed=True)["count"].sum()


def percentiles_us(bins: pd.DataFrame, percents: Sequence[float] | Floats) -> Floats:
    """Return the percentiles of `bins` in us, one for each of `percents`.

    A percentile is the first bin that reaches its share of the I/Os, as in fio. Raises ValueError for bins without I/O.
    """
    merged = merge_bins(bins)
    if not merged["count"].any():
        raise ValueError("percentiles need at least one I/O")
    return percentiles_of(merged["latency_ns"].to_numpy() / 1000, merged["count"].to_numpy(), percents)


def percentiles_of(latencies: Floats, counts: npt.NDArray[np.int64], percents: Sequence[float] | Floats) -> Floats:
    """Return the percentiles of ascending latencies that occur so often, one for each of `percents`."""
    reached = counts.cumsum()
    # 99.9 % of 1000 must be 999 despite rounding
    needed = np.asarray(percents, dtype=float) / 100 * reached[-1] * (1 - 1e-12)
    values: Floats = latencies[np.searchsorted(reached, needed, side="left")]
    return values


def nines(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the quantiles of merged bins.

    Columns: quantile_pct (50, 90, 99 … 99.9999), latency_us, ios_above: the number of I/Os above the quantile. With
    fewer than one, the quantile would be just the slowest I/O and has no row; the median always has a row. Raises
    ValueError for bins without I/O.
    """
    total = int(bins["count"].sum())
    percents = [percent for percent in NINES.values() if has_ios_beyond(total, percent)]
    ios_above = [total * (100 - percent) / 100 for percent in percents]
    return pd.DataFrame(
        {"quantile_pct": percents, "latency_us": percentiles_us(bins, percents), "ios_above": ios_above}
    )
