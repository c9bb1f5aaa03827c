"""What samples of two drives say of the ratio of their values: interval, test of a difference, test of equivalence.

All on logarithms, where a ratio is a difference: twice as fast is as far from equal as half as fast, and to exchange
the two drives changes nothing but the sign. The interval is Welch's (Biometrika 34, 1947), for scatters that differ;
it stands around the ratio of the values themselves, as in sectioning (Asmussen and Glynn, Stochastic Simulation, 2007,
III.5): a value may be a median, or a percentile of merged histograms, that is no mean of its samples. Equivalence is by
two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

MEDIAN_FACTOR = math.sqrt(math.pi / 2)
"""Standard error of the median of normal samples by that of their mean, for many samples; for fewer it is less, 1.16 of
three, so that intervals err to the safe side."""


ROUNDING = 1e-9
"""Relative scatter and differences below it are none: what sums of floating-point numbers leave, which no measurement
resolves."""


@dataclass(frozen=True)
class Scatter:
    """Of the logarithms of the samples behind each of many values."""

    counts: npt.NDArray[np.int64]
    variances: Floats
    """With n - 1; NaN for too few samples and where one is no positive number."""


@dataclass(frozen=True)
class Inference:
    """Of each of many ratios; NaN where a side has no variance that is known."""

    low: Floats
    high: Floats
    """Ends of the confidence interval of the logarithm of the ratio."""
    p_value: Floats
    """Of no difference, two-sided."""
    equivalence_p: Floats
    """Of a difference beyond the margin: the larger one of the two one-sided tests."""


def scatter(samples: Sequence[Sequence[float]], fewest: int) -> Scatter:
    """Of each group of samples; of fewer than `fewest`, two at the least, nothing is known."""
    counts = np.array([len(one) for one in samples], dtype=np.int64)
    variances = np.full(len(counts), np.nan)
    for count in np.unique(counts[counts >= fewest]):
        chosen = np.flatnonzero(counts == count)
        values: Floats = np.array([samples[int(one)] for one in chosen], dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.var(np.log(values), axis=1, ddof=1)
        found[np.ptp(values, axis=1) <= ROUNDING * np.abs(values).max(axis=1)] = 0.0
        variances[chosen] = np.where((values > 0).all(axis=1) & np.isfinite(values).all(axis=1), found, np.nan)
    return Scatter(counts, variances)


def inference(
    log_ratios: Floats, basis: Scatter, comparison: Scatter, factors: Floats, margin: float, confidence: float
) -> Inference:
    """Of the logarithms of ratios; `factors` are on their standard errors, see MEDIAN_FACTOR.

    `margin` is on the logarithm, equal in both directions; `confidence` a fraction. Without any scatter on either side
    the ratio is exactly what it is: an interval of no width, and p-values of 0 or 1. Scatter below ROUNDING is none.
    """
    of_basis, of_comparison = (factors**2 * one.variances / one.counts for one in (basis, comparison))
    variances = of_basis + of_comparison
    errors = np.sqrt(variances)
    known, exact = np.isfinite(errors), errors == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variances**2 / (of_basis**2 / (basis.counts - 1) + of_comparison**2 / (comparison.counts - 1))
        freedom = np.where(known & ~exact, freedom, 1.0)
        distances = np.where(known & ~exact, log_ratios / errors, 0.0)
        beyond = np.where(known & ~exact, (margin - np.abs(log_ratios)) / errors, 0.0)
    half = stats.t.ppf((1 + confidence) / 2, freedom) * np.where(known, errors, 0.0)
    p_value = np.where(
        exact, np.where(np.abs(log_ratios) <= ROUNDING, 1.0, 0.0), 2 * stats.t.sf(np.abs(distances), freedom)
    )
    within = np.abs(log_ratios) < margin
    # the nearer bound has the larger p of the two one-sided tests
    equivalence_p = np.where(exact, np.where(within, 0.0, 1.0), stats.t.sf(beyond, freedom))
    return Inference(
        *(np.where(known, one, np.nan) for one in (log_ratios - half, log_ratios + half, p_value, equivalence_p))
    )


def least_p(basis_n: int, comparison_n: int) -> float:
    """The least two-sided p-value that a test of ranks can reach: one ordering in all, and its mirror image."""
    return 2 / math.comb(basis_n + comparison_n, basis_n)
