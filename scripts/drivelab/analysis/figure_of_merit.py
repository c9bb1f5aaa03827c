"""One number for a drive: the geometric mean over the cells of a loop.

The geometric mean is the one mean by which ratios of two drives do not depend on the drive that they are normalised to
(Fleming and Wallace, "How not to lie with statistics: the correct way to summarize benchmark results", Communications
of the ACM 29(3), 1986). Its limits: every cell counts alike, however rare its workload is; a drive may lead by it and
be behind in the cell that matters; only figures of the same cells can be compared.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from drivelab.analysis.labels import KINDS

FIGURE_OF_MERIT = "figure_of_merit"


def figure_of_merit(loop: pd.DataFrame, metric: str) -> pd.DataFrame:
    """By number of the round: column `figure_of_merit`, over the cells of the loop; `loop` are rows of table `cells`
    with `cell_label`.

    Rounds that not every cell has are left out. Raises ValueError for a metric of which more is not better, for
    values that are not positive, and where no round has all cells.
    """
    if KINDS[metric] == "time":
        raise ValueError(f"a figure of merit is of a metric of which more is better, not of '{metric}'")
    values = loop.pivot_table(index="round", columns="cell_label", values=metric, aggfunc="mean", dropna=False).dropna()
    if values.empty:
        raise ValueError(f"{loop['recording'].iloc[0]}: no round has all cells of the loop")
    if not (values.to_numpy() > 0).all():
        raise ValueError(f"{loop['recording'].iloc[0]}: a cell without any {metric} has no geometric mean with others")
    return pd.DataFrame({FIGURE_OF_MERIT: np.exp(np.log(values).mean(axis=1))})
