"""Infer from the ratios of two drives: intervals, tests, and adjustment for the number of comparisons.

All computations use logarithms, where a ratio is a difference: twice as fast is as far from equal as half as fast, and
exchanging the two drives changes only the sign. Equivalence uses two one-sided tests (Schuirmann, Journal of
Pharmacokinetics and Biopharmaceutics 15, 1987). Tests are adjusted for all comparisons (Benjamini and Hochberg, Journal
of the Royal Statistical Society B 57, 1995), and so are the intervals of what is called a difference or the same: false
coverage rate (Benjamini and Yekutieli, Journal of the American Statistical Association 100, 2005). Test and interval
then agree: what is called different has an interval without zero, what is called the same has one within the margin.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import special

from drivelab.analysis.deltas.recordings import ROUNDING, Floats, Ratios
from drivelab.core.grouping import grouped
from drivelab.tables.labels import known_by_throughput


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

    A value without a p-value stays NaN and does not count as a comparison. `cells` are the columns that identify cells,
    their labels last. The family has each comparison once, see `one_of_each`; a twin that is not in it is judged by the
    same limit.
    """
    from scipy.stats import false_discovery_control  # slow, and not needed by those who read results

    known = np.flatnonzero(p_values.notna())
    named = pd.DataFrame({place: column.to_numpy()[known] for place, column in enumerate((*cells, metrics))}, dtype=str)
    turns = named.groupby(list(named)).cumcount().astype(str)  # a cell may occur twice
    p = p_values.to_numpy(dtype=float)[known]
    family = np.sort(p[one_of_each(zip(turns, *(named[place] for place in named), strict=True))])
    controlled = np.append(false_discovery_control(family, method="bh"), 1.0)
    # A twin between two of the family has no more than the next larger one, and what its own rank there gives.
    of_rank = len(family) * p / np.maximum(np.searchsorted(family, p, side="right"), 1)
    values, critical = np.full((2, len(p_values)), np.nan)
    values[known] = np.minimum(of_rank, controlled[np.searchsorted(family, p)])
    if rejected := int((controlled[:-1] <= level).sum()):
        critical[known] = rejected * level / len(family)
    return Adjusted(pd.Series(values, index=p_values.index), pd.Series(critical, index=p_values.index))


@dataclass(frozen=True)
class Value:
    """What identifies a value of a comparison, and what is said about it."""

    place: Hashable
    """Measurement, or compared drive."""
    cell_label: str
    metric: str
    said: Hashable = None
    """Verdict and reasons: a twin with others is shown by itself."""


def main_values(
    values: Sequence[Value], tracked: frozenset[tuple[Hashable, str, str]] = frozenset()
) -> dict[int, list[int]]:
    """Return the positions of the values to show, each with the positions of the twins that say the same.

    IOPS, throughput and mean latency of a cell are one comparison. The main one is the tracked metric, else throughput
    for large blocks and IOPS for small blocks, else the first present. `tracked` has (place, cell label, metric). Cells
    keep their order, and so do the other values of a cell, after the main one.
    """
    cells = grouped(range(len(values)), lambda position: (values[position].place, values[position].cell_label))
    shown: dict[int, list[int]] = {}
    for (place, label), positions in cells.items():
        twins = [position for position in positions if compared(label, values[position].metric) == TWINS[0]]
        known_by = "bandwidth_mib_s" if known_by_throughput(label) else TWINS[0]
        ranked = sorted(twins, key=lambda position: (
            (place, label, values[position].metric) not in tracked, values[position].metric != known_by))  # fmt: skip
        main = (ranked or positions)[0]
        same = [position for position in twins if position != main and values[position].said == values[main].said]
        shown[main] = same
        shown |= {position: [] for position in positions if position != main and position not in same}
    return shown
