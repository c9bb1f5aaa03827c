"""Compute how much the slowest I/Os contribute to all latency.

One I/O in ten thousand may contribute a tenth.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.latency import merge_bins


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
    """Return the sum of all values from each one on.

    Exact for small tails, unlike a difference of large sums.
    """
    return values[::-1].cumsum()[::-1]
