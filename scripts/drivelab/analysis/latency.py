"""Latency distributions from fio's bins.

Percentiles come from merged bins: an average of percentiles is the percentile of nothing. A bin is 1/64
of an octave wide and `latency_ns` is its middle, so every latency here is true to 0.8 %.
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
"""Percent by metric: "the nines" that a latency is told by."""
HEAT_BINS_PER_DECADE = 20
"""Height of a cell of the heat map: 12 %, coarse beside fio's bins, fine beside what the eye tells apart (ours)."""


def merge_bins(bins: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Bins of directions, rounds, slices added up: columns `by`, latency_ns (ascending), count."""
    return bins.groupby([*by, "latency_ns"], as_index=False, observed=True)["count"].sum()


def percentiles_us(bins: pd.DataFrame, percents: Sequence[float]) -> npt.NDArray[np.float64]:
    """For each of `percents`, the latency in us that so many percent of all I/Os in `bins` did not exceed.

    It is the first bin that gets there, as in fio. Raises ValueError for bins without any I/O.
    """
    merged = merge_bins(bins)
    reached = merged["count"].to_numpy().cumsum()
    if not reached.size or reached[-1] == 0:
        raise ValueError("there are no I/Os to take percentiles of")
    # 99.9 % of 1000 is 999, not the next number above that
    needed = np.asarray(percents, dtype=float) / 100 * reached[-1] * (1 - 1e-12)
    latency_us = merged["latency_ns"].to_numpy() / 1000
    found: npt.NDArray[np.float64] = latency_us[np.searchsorted(reached, needed, side="left")]
    return found


def exceedance(bins: pd.DataFrame) -> pd.DataFrame:
    """Share of the I/Os that took longer, for each latency met: columns latency_us, share_above (1 to 0).

    On a logarithmic axis this is the curve "between the nines". Empty for bins without any I/O.
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
    """Rows of table `latency_bins` with begin_s and end_s of their cell or slice, from table `cells`.

    Seconds count from the start of the measurement, as `elapsed_s` does. Bins of cells that are not in `cells` are
    left out.
    """
    place = ["recording", "step", "round", "cell"]
    times = cells[place].assign(begin_s=cells["elapsed_s"], end_s=cells["elapsed_s"] + cells["runtime_s"])
    return bins.merge(times, on=place, how="inner")


def latency_heat(bins: pd.DataFrame, *, bins_per_decade: int = HEAT_BINS_PER_DECADE) -> pd.DataFrame:
    """I/Os by time and latency: columns begin_s, end_s, low_us, high_us, count, in the order of time, then latency.

    `bins` have begin_s, end_s, latency_ns and count, see `timed_bins`; directions and cells of the same time add up.
    Latency is cut into `bins_per_decade` equal parts of each power of ten of microseconds; a latency of zero counts as
    1 ns. Cells of the heat map without I/O have no row.
    """
    latency_ns = np.maximum(bins["latency_ns"].to_numpy(dtype=float), 1.0)
    # an edge belongs to the bin above it, whatever the last bit of its logarithm says
    number = np.floor(np.log10(latency_ns / 1000) * bins_per_decade + 1e-9).astype(np.int64)
    cut = bins[["begin_s", "end_s", "count"]].assign(number=number)
    heat = cut[cut["count"] > 0].groupby(["begin_s", "end_s", "number"], as_index=False)["count"].sum()
    edges = heat["number"].to_numpy(dtype=float)
    low_us, high_us = 10 ** (edges / bins_per_decade), 10 ** ((edges + 1) / bins_per_decade)
    return heat.assign(low_us=low_us, high_us=high_us)[["begin_s", "end_s", "low_us", "high_us", "count"]]
