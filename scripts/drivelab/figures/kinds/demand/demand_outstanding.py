"""I/O rate and latency of a sweep against all outstanding I/Os."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.kinds.demand import demand
from drivelab.figures.kinds.demand.demand import Panel, stacked
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="demand_outstanding",
        title="Outstanding I/Os",
        caption=(
            "I/O rate and mean latency against all outstanding I/Os (threads times depth), a line for each "
            "number of threads. Where lines coincide, only the number of outstanding I/Os matters. Beyond "
            "the knee the latency grows and the rate does not."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=110,
    ),
)


@style.styled
def demand_outstanding(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw IOPS above mean latency, against threads times depth, a line per number of threads.

    `cells` holds one drive and run. If `steady_state` is empty, points are medians of the counted rounds.
    Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state)
    panels = [Panel(metric, quantity(metric, float(table[metric].max()))) for metric in demand.METRICS]
    return stacked("Outstanding I/Os", table, panels, steady_state)
