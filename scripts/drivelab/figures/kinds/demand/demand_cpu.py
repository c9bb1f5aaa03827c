"""CPU time that the I/O rate of a sweep costs the host."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.quantities import Quantity, quantity
from drivelab.figures.kinds.demand import demand
from drivelab.figures.kinds.demand.demand import Panel, stacked
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="demand_cpu",
        title="CPU use",
        caption=(
            "System and user CPU time of all threads of the load generator; 100 % is one core. "
            "Where the CPU is saturated, the figure shows the host's limit, not the drive's."
        ),
        tables=("cells", "steady_state"),
        when=("demand_cpu",),
        place=130,
    ),
)

_SHARES = {"system_cpu_pct": "System CPU", "user_cpu_pct": "User CPU"}
_UNIT = "% of a core"


@style.styled
def demand_cpu(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw IOPS, and system and user CPU time of all fio threads, against threads times depth.

    The columns of `cells` are shares of the time of one thread; the figure multiplies them by the number of threads.
    `cells` holds one drive and run; `steady_state` may be empty. Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state, ("iops", *_SHARES))
    table = table.assign(**{column: table[column] * table["threads"] for column in _SHARES})
    panels = [Panel("iops", quantity("iops", float(table["iops"].max())))]
    panels += [Panel(column, Quantity(name, _UNIT)) for column, name in _SHARES.items()]
    return stacked("CPU use of the load generator", table, panels, steady_state)
