"""Adjust p-values for the number of comparisons.

Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the Royal Statistical Society B 57(1), 1995:
on average, the share of false positives among the reported differences is at most the level. This also holds for
positively correlated values (Benjamini and Yekutieli, Annals of Statistics 29(4), 2001), such as cells of one drive.

With a fixed number of outstanding I/Os, IOPS, bandwidth and mean latency of a cell are one result in three forms:
bandwidth is IOPS times block size, and IOPS times mean latency is the number outstanding (Little, Operations Research
9(3), 1961). They count as one comparison. Counted as three, each clear difference would be in the family three times
and weaken the adjustment of all others.

The family has only values without doubts. A doubtful value never gets a verdict from its p-value. In the family, its
small p-value would weaken the adjustment of all others, and more false positives than the level allows would be
reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

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
