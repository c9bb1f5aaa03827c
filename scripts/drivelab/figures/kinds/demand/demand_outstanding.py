"""The I/O rate and the response time of a sweep against all outstanding I/Os."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.kinds.demand import demand
from drivelab.figures.kinds.demand.demand_stack import Panel, stacked
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="demand_outstanding",
        title="Outstanding I/Os",
        caption=(
            "I/O rate and mean latency against all outstanding I/Os, threads times depth, with a line for "
            "each number of threads. Where lines lie on each other it does not matter who waits; beyond the "
            "knee latency grows and the rate does not."
        ),
        tables=("cells", "steady_state"),
        status="cells",
        when=("demand",),
        place=110,
    ),
)


@style.styled
def demand_outstanding(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """IOPS above, mean latency below, each against threads times depth, a line per number of threads.

    `cells` holds one drive and run; `steady_state` may be empty, the points are then medians of the counted rounds.
    Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state)
    panels = [Panel(metric, quantity(metric, float(table[metric].max()))) for metric in demand.METRICS]
    return stacked("Outstanding I/Os", table, panels, steady_state)
