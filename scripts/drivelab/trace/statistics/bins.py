"""Histograms of whole numbers in logarithmic bins, like fio's latencies."""

from __future__ import annotations

import math

import pandas as pd

SUB_BITS = 6
"""64 bins per octave, exact below 128: FIO_IO_U_PLAT_BITS of fio's stat.h."""
ERROR_PCT = 100 / (2 << SUB_BITS)
"""Largest error of a percentile, which is the middle of its bin."""


def histogram_sql(values: str) -> str:
    """Return a query for the histogram of `values`, a query with a column `value` of numbers >= 0 or null.

    The result has a row for each non-empty bin, ascending, after the other columns of `values`: the bin's bounds `low`
    and `high`, both inclusive, and of its values the number, the exact sum `total`, the sum of the squares, the least
    and the largest.
    """
    # log2 of a value just below a power of two may be rounded up; the value still gets its own bin.
    shift = f"greatest(floor(log2(greatest(value, 1)))::BIGINT - {SUB_BITS}, 0)"
    return f"""
        SELECT * EXCLUDE (value, shift), value >> shift << shift AS low, low + (1::BIGINT << shift) - 1 AS high,
               count(*) AS requests, sum(value) AS total, sum(value::DOUBLE * value) AS squares,
               min(value) AS least, max(value) AS largest
        FROM (SELECT *, {shift} AS shift FROM ({values}) WHERE value IS NOT NULL)
        GROUP BY ALL ORDER BY ALL"""


def mean(bins: pd.DataFrame) -> float:
    """Return the mean of the values in a histogram; NaN for none."""
    return sum(bins["total"]) / sum(bins["requests"]) if len(bins) else math.nan


def largest(bins: pd.DataFrame) -> float:
    """Return the largest value in a histogram; NaN for none."""
    return float(max(bins["largest"])) if len(bins) else math.nan


def percentile(bins: pd.DataFrame, percent: float) -> float:
    """Return the middle of the bin of rank ceil(percent % of n), clipped to the data; NaN for no values."""
    if bins.empty:
        return math.nan
    reached = bins["requests"].cumsum().to_numpy()
    rank = max(1, math.ceil(percent / 100 * int(reached[-1]) - 1e-9))
    of_rank = bins.iloc[int(reached.searchsorted(rank))]
    middle = (int(of_rank["low"]) + int(of_rank["high"])) / 2
    return float(min(max(middle, min(bins["least"])), largest(bins)))
