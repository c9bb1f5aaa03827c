"""Compute one number for a drive: the geometric mean over the cells of a loop.

Only with the geometric mean does the ratio of two drives not depend on the drive that they are normalised to (Fleming
and Wallace, "How not to lie with statistics: the correct way to summarize benchmark results", Communications of the ACM
29(3), 1986). Its limits: every cell counts equally, however rare its workload is; the leading drive may be behind in
the cell that matters; only figures of the same cells can be compared.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.labels import KINDS

FIGURE_OF_MERIT = "figure_of_merit"


def figure_of_merit(loop: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return the column `figure_of_merit` by round, over the cells of the loop.

    `loop` has rows of table `cells` with `cell_label`. Rounds that lack a cell are left out. Raises ValueError for a
    metric where less is better, for values that are not positive, and if no round has all cells.
    """
    if KINDS[metric] == "time":
        raise ValueError(f"a figure of merit needs a metric where more is better, not '{metric}'")
    values = loop.pivot_table(index="round", columns="cell_label", values=metric, aggfunc="mean", dropna=False).dropna()
    if values.empty:
        raise ValueError(f"{loop['recording'].iloc[0]}: no round has all cells of the loop")
    if not (values.to_numpy() > 0).all():
        raise ValueError(f"{loop['recording'].iloc[0]}: a geometric mean needs positive {metric} in every cell")
    return pd.DataFrame({FIGURE_OF_MERIT: np.exp(np.log(values).mean(axis=1))})
