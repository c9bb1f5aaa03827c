"""Shared parts of the figures of a sweep over threads and queue depths."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, selection, style
from drivelab.figures.base.quantities import Quantity

METRICS = ("iops", "mean_latency_us")
_MOST_PANELS = 9
_COLUMNS = 2


def surface(cells: pd.DataFrame, steady_state: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return columns workload, threads, queue_depth and `metrics`, a row for each point of the sweep.

    Workloads measured at a single point, such as the writes before each round, are left out.
    """
    loop = counted.loop_cells(cells)
    table = counted.values(loop, steady_state, list(metrics), ["workload", "threads", "queue_depth"])
    points = table.groupby("workload")["threads"].transform("size")
    table = table[points > 1]
    if table.empty:
        raise ValueError("table 'cells' has no workload at several threads or queue depths")
    return table


def panels(title: str, table: pd.DataFrame, *, height_in: float = 2.5) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with axes for each of the first workloads of `table`, by name.

    The title names the workload if there is only one.
    """
    workloads = list(table["workload"].drop_duplicates())
    title += f", {workloads[0]}" if len(workloads) == 1 else ""
    shown = workloads[:_MOST_PANELS]
    columns = min(len(shown), _COLUMNS)
    rows = -(-len(shown) // columns)
    figure = style.new_figure(title, height_in=style.HEIGHT_IN if rows == 1 else 1.2 + height_in * rows)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    axes_of = dict(zip(shown, grid.flat, strict=False))
    for name, axes in axes_of.items():
        if len(axes_of) > 1:
            axes.set_title(name, fontsize=style.SMALL_PT)
    if len(workloads) > len(shown):
        style.note(figure, f"the first {len(shown)} of {len(workloads)} workloads; all are in the tables")
    return figure, axes_of


def lines(table: pd.DataFrame, part: pd.DataFrame) -> Iterator[tuple[pd.DataFrame, dict[str, Any]]]:
    """Yield the points of a workload (`part` of `table`) by number of threads, and the style of their line."""
    threads = sorted(int(count) for count in table["threads"].unique())
    for place, (count, colour) in enumerate(zip(threads, style.ordered_colours(len(threads)), strict=True)):
        look = {"color": colour, "marker": style.MARKERS[place % len(style.MARKERS)],
                "label": f"{count} thread{'' if count == 1 else 's'}", "gid": "line"}  # fmt: skip
        yield part[part["threads"] == count].sort_values("queue_depth"), look


def finish(figure: Figure, axes: Axes, steady_state: pd.DataFrame) -> None:
    """Add the legend, and an alarm if the drive was not steady."""
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, axes, "Threads")


_MOST_WORKLOADS = 2


@dataclass(frozen=True)
class Panel:
    """A column of the points that one panel shows."""

    column: str
    quantity: Quantity


def stacked(title: str, table: pd.DataFrame, panels: Sequence[Panel], steady_state: pd.DataFrame) -> Figure:
    """Draw a row for each of `panels` and a column for each of the first workloads.

    Lines are numbers of threads. `table` is a result of `surface`.
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
    finish(figure, grid[0, 0], steady_state)
    return figure


def _draw(axes: Axes, table: pd.DataFrame, part: pd.DataFrame, panel: Panel) -> None:
    scale = panel.quantity
    for line, look in lines(table, part):
        axes.plot(line["outstanding"], line[panel.column] / scale.divisor, **look)
    values = [float(value) for value in part[panel.column] / scale.divisor]
    log = ax.is_wide(values)
    ax.scale_y(axes, values, scale, log=log)
    axes.set_ylabel(f"{scale.name}\n({scale.unit}){', log' if log else ''}")
