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
HEAT_BINS_PER_DECADE = 20
"""Rows of the heat map per decade: 12 % each, coarser than fio's bins and finer than the eye can resolve (ours)."""


def merge_bins(bins: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Add up bins: columns `by`, latency_ns (ascending), count."""
    return bins.groupby([*by, "latency_ns"], as_index=False, observed=True)["count"].sum()


def percentiles_us(bins: pd.DataFrame, percents: Sequence[float]) -> npt.NDArray[np.float64]:
    """Return the percentiles of `bins` in us, one for each of `percents`.

    A percentile is the first bin that reaches its share of the I/Os, as in fio. Raises ValueError for bins without I/O.
    """
    merged = merge_bins(bins)
    reached = merged["count"].to_numpy().cumsum()
    if not reached.size or reached[-1] == 0:
        raise ValueError("percentiles need at least one I/O")
    # 99.9 % of 1000 must be 999 despite rounding
    needed = np.asarray(percents, dtype=float) / 100 * reached[-1] * (1 - 1e-12)
    latency_us = merged["latency_ns"].to_numpy() / 1000
    values: npt.NDArray[np.float64] = latency_us[np.searchsorted(reached, needed, side="left")]
    return values


def exceedance(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the share of I/Os that took longer than each observed latency.

    Columns: latency_us, share_above (1 to 0).
    On a logarithmic axis this is the curve "between the nines". Empty for bins without I/O.
    """
    merged = merge_bins(bins)
    merged = merged[merged["count"] > 0]
    counts = merged["count"].to_numpy()
    return pd.DataFrame(
        {
            "latency_us": merged["latency_ns"].to_numpy() / 1000,
            "share_above": (counts.sum() - counts.cumsum()) / max(counts.sum(), 1),
        }
    )


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
