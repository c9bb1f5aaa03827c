"""Infer from the ratios of two drives: intervals, tests, and adjustment for the number of comparisons.

All computations use logarithms, where a ratio is a difference: twice as fast is as far from equal as half as fast, and
exchanging the two drives changes only the sign. Equivalence uses two one-sided tests (Schuirmann, Journal of
Pharmacokinetics and Biopharmaceutics 15, 1987). Tests are adjusted for all comparisons (Benjamini and Hochberg, Journal
of the Royal Statistical Society B 57, 1995), and so are the intervals of what is called a difference or the same: false
coverage rate (Benjamini and Yekutieli, Journal of the American Statistical Association 100, 2005). Test and interval
then agree: what is called different has an interval without zero, what is called the same has one within the margin.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from drivelab.analysis.deltas.recordings import ROUNDING, Floats, Ratios

Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class PValues:
    """p-values of many ratios, arrays of shape (ratios,); NaN where the error is not known."""

    difference: Floats
    """For the hypothesis of no difference, two-sided."""
    equivalence: Floats
    """For the hypothesis of a difference beyond the margin: the larger of the two one-sided tests."""


def p_values(ratios: Ratios, margin: float) -> PValues:
    """Test ratios. `margin` applies to the logarithm, equally in both directions.

    If the error is 0, the ratio is exact: the p-values are 0 or 1.
    """
    exact = ratios.errors == 0
    least, most = np.maximum(np.abs(ratios.logs) - ratios.unsure, 0.0), np.abs(ratios.logs) + ratios.unsure
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = 2 * special.stdtr(ratios.freedom, -least / ratios.errors)
        # the nearer bound has the larger p of the two one-sided tests
        equivalence = special.stdtr(ratios.freedom, (most - margin) / ratios.errors)
    return PValues(
        np.where(exact, np.where(least <= ROUNDING, 1.0, 0.0), difference),
        np.where(exact, np.where(most < margin, 0.0, 1.0), equivalence),
    )


def interval(ratios: Ratios, outside: Floats) -> tuple[Floats, Floats]:
    """Return both ends of intervals of the logarithms that miss the true ratio with probability `outside`."""
    half = np.abs(special.stdtrit(ratios.freedom, outside / 2)) * ratios.errors + ratios.unsure
    return ratios.logs - half, ratios.logs + half


def least_p(basis_n: int, comparison_n: int, *, paired: bool = False) -> float:
    """Return the smallest two-sided p-value that a rank test can reach; of pairs, a signed-rank test."""
    return 2 / (2**basis_n if paired else math.comb(basis_n + comparison_n, basis_n))


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


@dataclass(frozen=True)
class Adjusted:
    """Adjusted p-values, and the largest p-value that a family rejects; indexed like the p-values."""

    p: pd.Series
    critical: pd.Series
    """R q / m, for R rejected of m; NaN if none is."""


def adjusted(p_values: pd.Series, cells: Sequence[pd.Series], metrics: pd.Series, level: float) -> Adjusted:
    """Adjust p-values so that of those up to `level`, at most this share is expected to be false.

    A value without a p-value stays NaN and does not count as a comparison.
    `cells` are the columns that identify cells, their labels last. The family has each comparison once. Twins are
    adjusted metric by metric: the family then has this metric of each cell, or if the cell lacks it, the next twin that
    the cell has. Values without twins are adjusted together with the first of TWINS.
    """
    from scipy.stats import false_discovery_control  # slow, and not needed by those who read results

    known = p_values.notna()
    p, critical = np.full((2, len(p_values)), np.nan)
    values = p_values[known].to_numpy(dtype=float)
    *_, labels = keys = [column[known].tolist() for column in cells]
    metric_of = metrics[known].tolist()
    is_twin = np.array([metric in TWINS and compared(label, metric) == TWINS[0]
                        for label, metric in zip(labels, metric_of, strict=True)], dtype=bool)  # fmt: skip
    cell, column = _numbered(zip(*keys, metric_of, strict=True), is_twin)
    wide = np.full((cell.max(initial=-1) + 1, len(TWINS)), np.nan)
    wide[cell, column] = values[is_twin]
    places = np.flatnonzero(known)
    alone, twins = places[~is_twin], places[is_twin]
    for place, metric in enumerate(TWINS):
        by_cell = wide[:, place]
        for other in range(len(TWINS)):
            by_cell = np.where(np.isnan(by_cell), wide[:, other], by_cell)
        controlled = false_discovery_control(np.concatenate([values[~is_twin], by_cell]), method="bh")
        rejected = int((controlled <= level).sum())
        of_metric = twins[column == place]
        p[of_metric] = controlled[len(alone) + cell[column == place]]
        of_family = of_metric
        if metric == TWINS[0]:
            p[alone] = controlled[: len(alone)]
            of_family = np.concatenate([alone, of_metric])
        if rejected:
            critical[of_family] = rejected * level / len(controlled)
    return Adjusted(pd.Series(p, index=p_values.index), pd.Series(critical, index=p_values.index))


def _numbered(keys: Iterable[tuple[str, ...]], is_twin: npt.NDArray[np.bool_]) -> tuple[Places, Places]:
    """Return the number of the cell of each twin, and the place of its metric in TWINS.

    The last element of a key is the metric; the others identify the cell. A cell may occur twice.
    """
    cells: dict[tuple[tuple[str, ...], int], int] = {}
    seen: Counter[tuple[str, ...]] = Counter()
    numbers, columns = [], []
    for key in compress(keys, is_twin):
        *cell, metric = key
        numbers.append(cells.setdefault((tuple(cell), seen[key]), len(cells)))
        columns.append(TWINS.index(metric))
        seen[key] += 1
    return np.array(numbers, dtype=np.intp), np.array(columns, dtype=np.intp)
