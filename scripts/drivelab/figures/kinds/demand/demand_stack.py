"""Stacked panels of a sweep against all outstanding I/Os (threads times depth)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, style
from drivelab.figures.base.quantities import Quantity
from drivelab.figures.kinds.demand import demand

_MOST_WORKLOADS = 2


@dataclass(frozen=True)
class Panel:
    """A column of the points that one panel shows."""

    column: str
    quantity: Quantity


def stacked(title: str, table: pd.DataFrame, panels: Sequence[Panel], steady_state: pd.DataFrame) -> Figure:
    """Draw a row for each of `panels` and a column for each of the first workloads.

    Lines are numbers of threads. `table` is a result of `demand.surface`.
    """
    workloads = list(table["workload"].drop_duplicates())
    shown = workloads[:_MOST_WORKLOADS]
    if len(workloads) == 1:
        title += f", {workloads[0]}"
    figure = style.new_figure(title, height_in=1.4 + 1.9 * len(panels))
    grid = figure.subplots(len(panels), len(shown), squeeze=False, sharex="col")
    left_out = f"; the first {len(shown)} of {len(workloads)} workloads" if len(shown) < len(workloads) else ""
    style.note(figure, f"each point: {counted.what(steady_state)}{left_out}")
    for column, workload in enumerate(shown):
        part = table[table["workload"] == workload]
        part = part.assign(outstanding=part["threads"] * part["queue_depth"])
        if len(shown) > 1:
            grid[0, column].set_title(workload, fontsize=style.SMALL_PT)
        for row, panel in enumerate(panels):
            _draw(grid[row, column], table, part, panel)
        places = sorted(int(total) for total in part["outstanding"].unique())
        ax.binary_axis(grid[-1, column], places, "{:g}".format, room=1.3, apart=1.6)
        grid[-1, column].set_xlabel("Outstanding I/Os (number),\nthreads \N{MULTIPLICATION SIGN} depth, log scale")
    figure.align_ylabels(grid[:, 0])
    demand.finish(figure, grid[0, 0], steady_state)
    return figure


def _draw(axes: Axes, table: pd.DataFrame, part: pd.DataFrame, panel: Panel) -> None:
    scale = panel.quantity
    for line, look in demand.lines(table, part):
        axes.plot(line["outstanding"], line[panel.column] / scale.divisor, **look)
    values = [float(value) for value in part[panel.column] / scale.divisor]
    log = ax.is_wide(values)
    ax.scale_y(axes, values, scale, log=log)
    axes.set_ylabel(f"{scale.name}\n({scale.unit}){', log' if log else ''}")
