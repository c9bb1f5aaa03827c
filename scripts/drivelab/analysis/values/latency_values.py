"""Compute latency distributions from fio's bins.

Percentiles come from merged bins, because an average of percentiles is not a percentile. A bin is 1/64 of an octave
wide and `latency_ns` is its middle, so every latency here is accurate to 0.8 %.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

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
_OUTSIDE = 0.05
HEAT_BINS_PER_DECADE = 20
"""Rows of the heat map per decade: 12 % each, coarser than fio's bins and finer than the eye can resolve (ours)."""


def has_ios_beyond(ios: float, percent: float) -> bool:
    """Return whether an I/O lies beyond a percentile; without, the percentile would be just the slowest I/O.

    The median always has its I/Os.
    """
    return percent <= 50 or ios * (100 - percent) / 100 >= 1 - 1e-9


def merge_bins(bins: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Add up bins: columns `by`, latency_ns (ascending), count."""
    return bins.groupby([*by, "latency_ns"], as_index=False, observed=True)["count"].sum()


def percentiles_us(bins: pd.DataFrame, percents: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the percentiles of `bins` in us, one for each of `percents`.

    A percentile is the first bin that reaches its share of the I/Os, as in fio. Raises ValueError for bins without I/O.
    """
    merged = merge_bins(bins)
    if not merged["count"].any():
        raise ValueError("percentiles need at least one I/O")
    return percentiles_of(merged["latency_ns"].to_numpy() / 1000, merged["count"].to_numpy(), percents)


def percentiles_of(
    latencies: npt.NDArray[np.float64],
    counts: npt.NDArray[np.int64],
    percents: Sequence[float] | npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """Return the percentiles of ascending latencies that occur so often, one for each of `percents`."""
    reached = counts.cumsum()
    # 99.9 % of 1000 must be 999 despite rounding
    needed = np.asarray(percents, dtype=float) / 100 * reached[-1] * (1 - 1e-12)
    values: npt.NDArray[np.float64] = latencies[np.searchsorted(reached, needed, side="left")]
    return values


def timed_bins(bins: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Add begin_s and end_s of the cell or slice to rows of table `latency_bins`.

    Seconds count from the start of the measurement, like `elapsed_s`. Bins of cells missing in `cells` are left out.
    """
    place = ["recording", "step", "round", "cell"]
    times = cells[place].assign(begin_s=cells["elapsed_s"], end_s=cells["elapsed_s"] + cells["runtime_s"])
    return bins.merge(times, on=place, how="inner")


def latency_heat(bins: pd.DataFrame, *, bins_per_decade: int = HEAT_BINS_PER_DECADE) -> pd.DataFrame:
    """Count I/Os by time and latency, sorted by time, then latency.

    Columns: begin_s, end_s, low_us, high_us, count.
    `bins` have begin_s, end_s, latency_ns and count, see `timed_bins`; bins of the same time are added up. Each power
    of ten of microseconds has `bins_per_decade` equal parts; a latency of zero counts as 1 ns. Cells of the heat map
    without I/O have no row.
    """
    latency_ns = np.maximum(bins["latency_ns"].to_numpy(dtype=float), 1.0)
    # an edge belongs to the bin above it, despite rounding of its logarithm
    number = np.floor(np.log10(latency_ns / 1000) * bins_per_decade + 1e-9).astype(np.int64)
    cut = bins[["begin_s", "end_s", "count"]].assign(number=number)
    heat = cut[cut["count"] > 0].groupby(["begin_s", "end_s", "number"], as_index=False)["count"].sum()
    edges = heat["number"].to_numpy(dtype=float)
    low_us, high_us = 10 ** (edges / bins_per_decade), 10 ** ((edges + 1) / bins_per_decade)
    return heat.assign(low_us=low_us, high_us=high_us)[["begin_s", "end_s", "low_us", "high_us", "count"]]


def nines(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the quantiles of merged bins.

    Columns: quantile_pct (50, 90, 99 … 99.9999), latency_us, low_us, high_us, ios_above. `low_us` to `high_us` is the
    exact 95 % interval by order statistics (David and Nagaraja, Order Statistics, 2003, section 7.1) of independent
    I/Os, with half a bin on each side; `high_us` is NaN where so few I/Os have no upper bound.
    `ios_above` is the number of I/Os above the quantile. With fewer than one, the quantile would be just the slowest
    I/O and has no row; the median always has a row. Raises ValueError for bins without I/O.
    """
    from scipy import stats  # slow to import

    total = int(bins["count"].sum())
    percents = [percent for percent in NINES.values() if has_ios_beyond(total, percent)]
    latency_us = percentiles_us(bins, percents)
    shares = np.asarray(percents) / 100
    ranks = stats.binom.ppf(_OUTSIDE / 2, total, shares), stats.binom.ppf(1 - _OUTSIDE / 2, total, shares) + 1
    low_us, high_us = (percentiles_us(bins, 100 * np.clip(rank, 1, total) / total) for rank in ranks)
    return pd.DataFrame(
        {
            "quantile_pct": percents,
            "latency_us": latency_us,
            "low_us": low_us * (1 - HALF_BIN),
            "high_us": np.where(ranks[1] > total, np.nan, high_us * (1 + HALF_BIN)),
            "ios_above": [total * (100 - percent) / 100 for percent in percents],
        }
    )


def tail_contribution(bins: pd.DataFrame) -> pd.DataFrame:
    """Return what lies above each observed latency.

    Columns: percentile, share_of_ios, share_of_time (1 falling to 0).
    `bins` have latency_ns and count. `percentile` (percent) is the share of I/Os that took no longer; `share_of_ios` is
    the share that took longer, and `share_of_time` their share of the sum of all latencies. The first row is percentile
    0, with all I/Os above it. The slowest latency has no I/O above it and no row. Empty for bins without I/O.
    """
    merged = merge_bins(bins)
    counts = merged["count"].to_numpy(dtype=float)
    met = counts > 0
    counts, latency_ns = counts[met], merged["latency_ns"].to_numpy(dtype=float)[met]
    above_ios, above_ns = _above(counts), _above(counts * latency_ns)
    share_of_ios = above_ios / max(counts.sum(), 1.0)
    return pd.DataFrame(
        {
            "percentile": 100 * (1 - share_of_ios),
            "share_of_ios": share_of_ios,
            "share_of_time": above_ns / above_ns[0] if above_ns.any() else share_of_ios,  # all latencies are zero
        }
    )


def _above(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the sum of all values from each one on. Exact for small tails, unlike a difference of large sums."""
    return values[::-1].cumsum()[::-1]
