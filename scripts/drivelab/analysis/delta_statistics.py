"""Infer the ratio of two drives' values from samples: interval and tests.

All computations use logarithms, where a ratio is a difference: twice as fast is as far from equal as half as fast, and
exchanging the two drives changes only the sign. The interval is Welch's (Biometrika 34, 1947), for unequal variances.
It is centred on the ratio of the values themselves, as in sectioning (Asmussen and Glynn, Stochastic Simulation, 2007,
III.5), because a value may be a median or a percentile of merged histograms instead of the mean of its samples.
Equivalence uses two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
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
"""Standard error of the median of many normal samples, divided by that of their mean. For fewer samples the factor is
smaller (1.16 for three), so intervals err on the safe side."""


ROUNDING = 1e-9
"""Relative scatter and differences below this count as zero: they are floating-point rounding."""


@dataclass(frozen=True)
class Scatter:
    """Count and variance of the logarithms of the samples of many values.

    Arrays of shape (values,).
    """

    counts: npt.NDArray[np.int64]
    variances: Floats
    """With n - 1; NaN for too few samples, or if a sample is not a positive number."""


@dataclass(frozen=True)
class Inference:
    """Results for many ratios, arrays of shape (ratios,).

    Values are NaN where the variance of a side is not known.
    """

    low: Floats
    high: Floats
    """Ends of the confidence interval of the logarithm of the ratio."""
    p_value: Floats
    """Two-sided p-value of the hypothesis of no difference."""
    equivalence_p: Floats
    """p-value of the hypothesis of a difference beyond the margin: the larger of the two one-sided tests."""


def scatter(samples: Sequence[Sequence[float]], fewest: int) -> Scatter:
    """Return the scatter of each group of samples.

    The scatter is unknown for fewer than `fewest` samples (at least two).
    """
    counts = np.array([len(group) for group in samples], dtype=np.int64)
    variances = np.full(len(counts), np.nan)
    for count in np.unique(counts[counts >= fewest]):
        chosen = np.flatnonzero(counts == count)
        values: Floats = np.array([samples[int(number)] for number in chosen], dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.var(np.log(values), axis=1, ddof=1)
        variance[np.ptp(values, axis=1) <= ROUNDING * np.abs(values).max(axis=1)] = 0.0
        variances[chosen] = np.where((values > 0).all(axis=1) & np.isfinite(values).all(axis=1), variance, np.nan)
    return Scatter(counts, variances)


def inference(
    log_ratios: Floats, basis: Scatter, comparison: Scatter, factors: Floats, margin: float, confidence: float
) -> Inference:
    """Return interval and p-values for the logarithms of ratios.

    `factors` multiply the standard errors, see MEDIAN_FACTOR. `margin` applies to the logarithm, equally in both
    directions; `confidence` is a fraction. If neither side has scatter above ROUNDING, the ratio is exact: the interval
    has no width, and the p-values are 0 or 1.
    """
    basis_variances, comparison_variances = (factors**2 * side.variances / side.counts for side in (basis, comparison))
    variances = basis_variances + comparison_variances
    errors = np.sqrt(variances)
    known, exact = np.isfinite(errors), errors == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = variances**2 / (
            basis_variances**2 / (basis.counts - 1) + comparison_variances**2 / (comparison.counts - 1)
        )
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
        *(np.where(known, column, np.nan) for column in (log_ratios - half, log_ratios + half, p_value, equivalence_p))
    )


def least_p(basis_n: int, comparison_n: int) -> float:
    """Return the smallest two-sided p-value that a rank test can reach."""
    return 2 / math.comb(basis_n + comparison_n, basis_n)
