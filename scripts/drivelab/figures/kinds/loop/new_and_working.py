"""Bars of the same cells in several states of the drive, such as new and working."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, selection, style
from drivelab.figures.base.quantities import format_number, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="new_and_working",
        title="New and working",
        caption=(
            "Throughput of the same workloads in successive states of the drive, such as empty and after random "
            "writes past its capacity. The number is the median of the rounds; the factor is relative to the first "
            "state."
        ),
        tables=("cells",),
        when=("states",),
        place=45,
        rows="loops",
    ),
)


@style.styled
def new_and_working(cells: pd.DataFrame) -> Figure:
    """Draw a group of bars for each workload, a bar for each phase.

    `cells` holds the loops of one recording. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    loop = counted.loop_cells(cells)
    loop = loop[loop["phase"].notna() & ~loop["cold"].astype(bool)].sort_values("step")
    phases = list(loop["phase"].drop_duplicates())
    if len(phases) < 2:
        raise ValueError("table 'cells' has no loops in several phases")
    values = loop.groupby(["workload", "phase"], sort=False)["bandwidth_mib_s"].median().unstack(sort=False)[phases]
    scale = quantity("bandwidth_mib_s", float(values.max().max()))
    figure = style.new_figure(f"{scale.name}, {' and '.join(phases)}", height_in=1.6 + 0.3 * values.size)
    axes = figure.subplots()
    width = 0.8 / len(phases)
    for number, (phase, colour) in enumerate(zip(phases, style.colours(len(phases)), strict=True)):
        places = [row + (number - (len(phases) - 1) / 2) * width for row in range(len(values))]
        shown = [float(value) / scale.divisor for value in values[phase]]
        axes.barh(places, shown, width * 0.92, color=colour, label=phase, gid="value")
        for place, value, first in zip(places, shown, values[phases[0]] / scale.divisor, strict=True):
            factor = "" if number == 0 or not first > 0 else f" ({format_number(value / first)}\N{MULTIPLICATION SIGN})"
            axes.annotate(f"{format_number(value)}{factor}", (value, place), (5, 0), textcoords="offset points",
                          va="center", fontsize=style.SMALL_PT, gid="number")  # fmt: skip
    axes.set_yticks(range(len(values)), [str(name) for name in values.index])
    axes.set_ylim(len(values) - 0.45, -0.55)
    axes.set_xlim(0, float(values.max().max()) / scale.divisor * 1.22)
    axes.set_xlabel(scale.label)
    axes.grid(visible=False, axis="y")
    ax.plain_numbers(axes, "x")
    ax.legend(figure, axes)
    return figure
