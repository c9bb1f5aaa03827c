"""Figures of a sweep over threads and queue depths, and what they share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, selection, style
from drivelab.figures.base.quantities import Quantity, quantity
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


_SHARES = {"system_cpu_pct": "System CPU", "user_cpu_pct": "User CPU"}
_UNIT = "% of a core"


@style.styled
def demand_cpu(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw IOPS, and system and user CPU time of all fio threads, against threads times depth.

    The columns of `cells` are shares of the time of one thread; the figure multiplies them by the number of threads.
    `cells` holds one drive and run; `steady_state` may be empty. Raises ValueError for unsuitable tables.
    """
    table = surface(cells, steady_state, ("iops", *_SHARES))
    table = table.assign(**{column: table[column] * table["threads"] for column in _SHARES})
    panels = [Panel("iops", quantity("iops", float(table["iops"].max())))]
    panels += [Panel(column, Quantity(name, _UNIT)) for column, name in _SHARES.items()]
    return stacked("CPU use of the load generator", table, panels, steady_state)


@style.styled
def demand_outstanding(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw IOPS above mean latency, against threads times depth, a line per number of threads.

    `cells` holds one drive and run. If `steady_state` is empty, points are medians of the counted rounds.
    Raises ValueError for unsuitable tables.
    """
    table = surface(cells, steady_state)
    panels = [Panel(metric, quantity(metric, float(table[metric].max()))) for metric in METRICS]
    return stacked("Outstanding I/Os", table, panels, steady_state)


@style.styled
def demand_variation(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the I/O rate of a demand sweep, a panel per workload.

    `cells` holds one drive and run. If `steady_state` is empty, points are medians of the counted rounds.
    Raises ValueError for unsuitable tables.
    """
    table = surface(cells, steady_state)
    scale = quantity("iops", float(table["iops"].max()))
    figure, axes_of = panels("Demand variation", table)
    style.note(figure, f"each point: {counted.what(steady_state)}")
    for name, axes in axes_of.items():
        part = table[table["workload"] == name]
        for line, look in lines(table, part):
            axes.plot(line["queue_depth"], line["iops"] / scale.divisor, **look)
        depths = sorted(int(depth) for depth in part["queue_depth"].unique())
        ax.binary_axis(axes, depths, "{:g}".format, room=1.3, apart=1.3)
        axes.set_xlabel("Queue depth per thread\n(number), log scale")
        values = [float(value) for value in part["iops"] / scale.divisor]
        ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    finish(figure, next(iter(axes_of.values())), steady_state)
    return figure
