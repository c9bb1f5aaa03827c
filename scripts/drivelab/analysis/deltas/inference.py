"""Infer the ratio of two drives' values from samples: interval and tests.

All computations use logarithms, where a ratio is a difference: twice as fast is as far from equal as half as fast, and
exchanging the two drives changes only the sign. The interval is Welch's (Biometrika 34, 1947), for unequal variances.
It is centred on the ratio of the values themselves, as in sectioning (Asmussen and Glynn, Stochastic Simulation, 2007,
III.5), because a value may be a median or a percentile of merged histograms instead of the mean of its samples.
Equivalence uses two one-sided tests (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
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


TWINS = ("iops", "bandwidth_mib_s", "mean_latency_us")
"""Metrics that are one comparison; the first one present represents all of them when comparisons are counted."""
_OF_PASSES = ("replay ", "set of ", "application ")
"""Label prefixes of workloads without a fixed number of outstanding I/Os: the trace or the application decides."""


def compared(cell_label: str, metric: str) -> str:
    """Return the name of a cell's comparison; all metrics in TWINS share one."""
    return TWINS[0] if metric in TWINS and not cell_label.startswith(_OF_PASSES) else metric


def one_of_each(values: Iterable[tuple[str, ...]]) -> list[int]:
    """Return the position of one value for each comparison.

    For twins it is the first in TWINS that is present.
    Each value is a tuple that identifies it; the last two elements are its cell label and metric.
    """
    representatives: dict[tuple[str, ...], tuple[int, int]] = {}
    for position, (*cell, label, metric) in enumerate(values):
        name = compared(label, metric)
        rank = TWINS.index(metric) if name in TWINS else 0
        key = (*cell, label, name)
        representatives[key] = min(representatives.get(key, (rank, position)), (rank, position))
    return [position for _, position in representatives.values()]


def adjusted(p_values: pd.Series, cells: Sequence[pd.Series], metrics: pd.Series) -> pd.Series:
    """Return the adjusted p-values.

    A value without a p-value (NaN) stays NaN and is no comparison.
    `cells` are the columns that identify cells, their labels last. The family has each comparison once. Twins are
    adjusted metric by metric: the family then has this metric of each cell, or if the cell lacks it, the next twin that
    the cell has. Values without twins are adjusted together with the first of TWINS.
    """
    known = p_values.notna()
    result = pd.Series(np.nan, index=p_values.index, dtype=float)
    if not known.any():
        return result
    names = [compared(label, metric) for label, metric in zip(cells[-1][known], metrics[known], strict=True)]
    rows = pd.DataFrame({number: column[known] for number, column in enumerate(cells)})
    rows = rows.assign(compared=names, metric=metrics[known], p=p_values[known].astype(float))
    is_twin = (rows["compared"] == TWINS[0]) & rows["metric"].isin(TWINS)
    alone, twins = rows.loc[~is_twin, "p"], rows[is_twin]
    number = twins.groupby([*range(len(cells)), "metric"], sort=False).cumcount()  # a label may occur twice
    cell = twins.assign(number=number).groupby([*range(len(cells)), "number"], sort=False).ngroup()
    wide = twins.assign(cell=cell).pivot(index="cell", columns="metric", values="p").reindex(columns=list(TWINS))
    for metric in TWINS:
        others = [twin for twin in TWINS if twin != metric]
        by_cell = wide[[metric, *others]].bfill(axis=1)[metric]
        family = np.concatenate([alone.to_numpy(dtype=float), by_cell.to_numpy(dtype=float)])
        controlled = stats.false_discovery_control(family, method="bh")
        if metric == TWINS[0]:
            result[alone.index] = controlled[: len(alone)]
        of_metric = twins.index[twins["metric"] == metric]
        result[of_metric] = controlled[len(alone) + by_cell.index.get_indexer(cell[of_metric])]
    return result
