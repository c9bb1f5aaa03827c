"""How much the samples behind a value scatter: median absolute deviation, and a bootstrap confidence interval.

The interval is the percentile bootstrap's (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3).
Of few samples, the resamples that are there at all are counted, each with its probability, instead of drawing some of
them: what drawing tends to, without any seed. Of many they are drawn, with a seed, by scipy. It is an interval without
assumptions on the distribution, and of few samples a narrow one: it cannot reach beyond the lowest and highest, and of
five it covers the true mean in about 5 of 6 cases, not in 19 of 20.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
FEWEST = 3
"""Samples below which there is neither a deviation nor an interval."""
MEAN, MEDIAN = "mean", "median"
_MOST_COUNTED = 7
"""Most samples whose resamples are counted: 1,716 different ones of seven."""
_DRAWN, _SEED = 1999, 20220801
_AT_A_TIME = 4_000_000
"""Resampled statistics in memory."""


def with_spread(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of table `summary` with the columns `mad`, `interval_low` and `interval_high`, from `samples` and `centre`.

    `centre` says which statistic of its samples a value is: MEAN or MEDIAN, None where it is another one; then the
    interval is what the row has already, or null.
    """
    found = rows.reindex(columns=[*rows.columns.drop(["mad"], errors="ignore"), "mad"])
    for name in ("interval_low", "interval_high"):
        found[name] = found[name].astype(float) if name in found else math.nan
    mad, low, high = (np.array(found[name], dtype=float) for name in ("mad", "interval_low", "interval_high"))
    behind = list(rows["samples"])
    counts = np.array([len(one) for one in behind], dtype=np.int64)
    for (count, centre), places in rows.groupby([counts, rows["centre"].fillna("")], sort=False).indices.items():
        if count < FEWEST:
            continue
        samples = np.array([behind[place] for place in places], dtype=float)
        mad[places] = stats.median_abs_deviation(samples, axis=1)
        if centre:
            low[places], high[places] = interval(samples, str(centre))
    return found.assign(mad=mad, interval_low=low, interval_high=high)


def interval(samples: Floats, centre: str, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """Ends of the bootstrap confidence interval of the mean or median of each row of `samples`."""
    count = samples.shape[1]
    if centre == MEDIAN and count % 2:
        return _of_odd_median(samples, confidence)
    low, high = (_counted if count <= _MOST_COUNTED else _drawn)(samples, centre, confidence)
    lowest, highest = samples.min(axis=1), samples.max(axis=1)
    # the mean of equal samples may be off by the last bit
    return np.clip(low, lowest, highest), np.clip(high, lowest, highest)


def interval_of(values: Floats, probabilities: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Of a statistic that has these values in the resamples of `resamples`."""
    low, high = _quantiles(values[:, None], probabilities, confidence)
    return float(low[0]), float(high[0])


@cache
def resamples(count: int) -> tuple[npt.NDArray[np.int64], Floats]:
    """All resamples of so many samples: how often each has each sample, and its probability."""
    drawn = itertools.combinations_with_replacement(range(count), count)
    found = [Counter(one) for one in drawn]
    counts = np.array([[one[place] for place in range(count)] for one in found], dtype=np.int64)
    ways = [math.factorial(count) / math.prod(math.factorial(n) for n in one) for one in counts.tolist()]
    return counts, np.array(ways, dtype=np.float64) / count**count


def _median_weights(counts: npt.NDArray[np.int64]) -> Floats:
    """By resample and sample in ascending order: what the median of the resample takes of the sample."""
    number = counts.shape[1]
    reached = counts.cumsum(axis=1)
    weights = np.zeros(counts.shape)
    for middle in ((number - 1) // 2, number // 2):
        weights[np.arange(len(counts)), (reached > middle).argmax(axis=1)] += 0.5
    return weights


def _of_odd_median(samples: Floats, confidence: float) -> tuple[Floats, Floats]:
    """The median of a resample is one of the samples; which, is a matter of the binomial distribution."""
    count = samples.shape[1]
    reached = stats.binom.sf((count - 1) // 2, count, np.arange(1, count + 1) / count)
    ordered = np.sort(samples, axis=1)
    low, high = (int(np.argmax(reached >= level - 1e-12)) for level in _levels(confidence))
    return ordered[:, low], ordered[:, high]


def _counted(samples: Floats, centre: str, confidence: float) -> tuple[Floats, Floats]:
    counts, probabilities = resamples(samples.shape[1])
    ordered = np.sort(samples, axis=1)
    weights = _median_weights(counts) if centre == MEDIAN else counts / samples.shape[1]
    size = max(_AT_A_TIME // len(counts), 1)
    parts = [
        _quantiles(weights @ ordered[start : start + size].T, probabilities, confidence)
        for start in range(0, len(ordered), size)
    ]
    return np.concatenate([low for low, _ in parts]), np.concatenate([high for _, high in parts])


def _drawn(samples: Floats, centre: str, confidence: float) -> tuple[Floats, Floats]:
    size = max(_AT_A_TIME // (_DRAWN * samples.shape[1]), 1)
    parts = [
        stats.bootstrap(
            (samples[start : start + size],),
            np.median if centre == MEDIAN else np.mean,
            axis=1,
            n_resamples=_DRAWN,
            confidence_level=confidence,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        ).confidence_interval
        for start in range(0, len(samples), size)
    ]
    return np.concatenate([one.low for one in parts]), np.concatenate([one.high for one in parts])


def _quantiles(found: Floats, probabilities: Floats, confidence: float) -> tuple[Floats, Floats]:
    """Of each column of `found`, whose rows have these probabilities."""
    order = np.argsort(found, axis=0)
    reached = probabilities[order].cumsum(axis=0)
    ends = []
    for level in _levels(confidence):
        first = np.argmax(reached >= level - 1e-12, axis=0)[None, :]
        ends.append(np.take_along_axis(found, np.take_along_axis(order, first, axis=0), axis=0)[0])
    return ends[0], ends[1]


def _levels(confidence: float) -> Sequence[float]:
    return ((1 - confidence) / 2, (1 + confidence) / 2)
