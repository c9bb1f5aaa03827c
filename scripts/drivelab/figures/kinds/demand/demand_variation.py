"""Demand variation: I/O rate against queue depth, a line per number of threads."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.kinds.demand import demand
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="demand_variation",
        title="Demand variation",
        caption=(
            "I/O rate against queue depth with a line for each number of threads, one panel per workload. "
            "Where a line bends and stays flat the drive is saturated: more I/Os outstanding only wait "
            "longer."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=90,
    ),
)


@style.styled
def demand_variation(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the I/O rate of a demand sweep, a panel per workload.

    `cells` holds one drive and run. If `steady_state` is empty, points are medians of the counted rounds.
    Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state)
    scale = quantity("iops", float(table["iops"].max()))
    figure, axes_of = demand.panels("Demand variation", table)
    style.note(figure, f"each point: {counted.what(steady_state)}")
    for name, axes in axes_of.items():
        part = table[table["workload"] == name]
        for line, look in demand.lines(table, part):
            axes.plot(line["queue_depth"], line["iops"] / scale.divisor, **look)
        depths = sorted(int(depth) for depth in part["queue_depth"].unique())
        ax.binary_axis(axes, depths, "{:g}".format, room=1.3, apart=1.3)
        axes.set_xlabel("Queue depth per thread\n(number), log scale")
        values = [float(value) for value in part["iops"] / scale.divisor]
        ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    demand.finish(figure, next(iter(axes_of.values())), steady_state)
    return figure
