"""Demand variation: I/O rate against queue depth, a line per number of threads."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

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
def demand_variation(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw `metric` (iops or mean_latency_us) of a demand sweep, a panel per workload.

    `cells` holds one drive and run. If `steady_state` is empty, points are medians of the counted rounds.
    Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state)
    scale = quantity(metric, float(table[metric].max()))
    figure, axes_of = demand.panels("Demand variation", table)
    style.note(figure, f"each point: {counted.what(steady_state)}")
    for name, axes in axes_of.items():
        part = table[table["workload"] == name]
        for line, look in demand.lines(table, part):
            axes.plot(line["queue_depth"], line[metric] / scale.divisor, **look)
        _depth_axis(axes, sorted(int(depth) for depth in part["queue_depth"].unique()))
        values = [float(value) for value in part[metric] / scale.divisor]
        ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    demand.finish(figure, next(iter(axes_of.values())), steady_state)
    return figure


def _depth_axis(axes: Axes, depths: list[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlim(depths[0] / 1.3, depths[-1] * 1.3)
    axes.xaxis.set_major_locator(FixedLocator(demand.readable(depths)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda depth, _: f"{depth:g}"))
    axes.set_xlabel("Queue depth per thread\n(number), log scale")
