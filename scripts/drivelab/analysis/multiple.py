"""Many comparisons at once: p-values adjusted for how many there are.

Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57(1), 1995:
of all differences that are called so, the share that are none is at most the level on average. It holds for values that
rise and fall together too (Benjamini and Yekutieli, Annals of Statistics 29(4), 2001), as cells of one drive do.

With a fixed number of I/Os outstanding, IOPS, bandwidth and mean latency of a cell say one thing in three ways
(bandwidth is IOPS times the block size, the product of IOPS and mean latency is the number outstanding: Little,
Operations Research 9(3), 1961). They are one comparison: counted as three, each clear difference would stand in the
family three times and make the adjustment of all others milder.

The family is of values that can be called. One that something speaks against is called by no p-value; would it stand in
the family, its small p would make the adjustment of all others milder, and more than the level of those that are called
would be none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

TWINS = ("iops", "bandwidth_mib_s", "mean_latency_us")
"""Metrics that are one comparison; the first one that is there stands for all of them where comparisons are counted."""
_OF_PASSES = ("replay ", "set of ", "application ")
"""Labels of what does not keep a fixed number of I/Os outstanding: the trace or the application decides."""


def compared(cell_label: str, metric: str) -> str:
    """Which comparison of a cell a metric is: a name that twins share."""
    return TWINS[0] if metric in TWINS and not cell_label.startswith(_OF_PASSES) else metric


def one_of_each(values: Iterable[tuple[str, ...]]) -> list[int]:
    """Positions of the values that stand for their comparisons, of twins the first one in TWINS that is there.

    Each value is given by what tells cells apart, the last two its label and metric.
    """
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for position, (*cell, label, metric) in enumerate(values):
        name = compared(label, metric)
        rank = TWINS.index(metric) if name in TWINS else 0
        key = (*cell, label, name)
        found[key] = min(found.get(key, (rank, position)), (rank, position))
    return [position for _, position in found.values()]


def adjusted(p_values: pd.Series, cells: Sequence[pd.Series], metrics: pd.Series) -> pd.Series:
    """p-values of all comparisons, adjusted; NaN where there is no p-value: it does not count as a comparison.

    `cells` are the columns that tell cells apart, the last one their labels. The family has each comparison once. That
    of twins is, when one of them is adjusted, this one, or where a cell has it not, the next one that it has; values
    that have no twin are adjusted together with the first of TWINS.
    """
    known = p_values.notna()
    found = pd.Series(np.nan, index=p_values.index, dtype=float)
    if not known.any():
        return found
    names = [compared(label, metric) for label, metric in zip(cells[-1][known], metrics[known], strict=True)]
    told = pd.DataFrame({number: one[known] for number, one in enumerate(cells)})
    told = told.assign(compared=names, metric=metrics[known], p=p_values[known].astype(float))
    is_twin = (told["compared"] == TWINS[0]) & told["metric"].isin(TWINS)
    alone, twins = told.loc[~is_twin, "p"], told[is_twin]
    number = twins.groupby([*range(len(cells)), "metric"], sort=False).cumcount()  # one label may come twice
    cell = twins.assign(number=number).groupby([*range(len(cells)), "number"], sort=False).ngroup()
    wide = twins.assign(cell=cell).pivot(index="cell", columns="metric", values="p").reindex(columns=list(TWINS))
    for metric in TWINS:
        others = [one for one in TWINS if one != metric]
        of_cells = wide[[metric, *others]].bfill(axis=1)[metric]
        family = np.concatenate([alone.to_numpy(dtype=float), of_cells.to_numpy(dtype=float)])
        controlled = stats.false_discovery_control(family, method="bh")
        if metric == TWINS[0]:
            found[alone.index] = controlled[: len(alone)]
        these = twins.index[twins["metric"] == metric]
        found[these] = controlled[len(alone) + of_cells.index.get_indexer(cell[these])]
    return found
