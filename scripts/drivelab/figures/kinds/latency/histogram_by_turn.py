"""Latency histograms of a repeated step, such as the points MAX, MID and MIN of a sweep."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.kinds.latency.latency_by_turn import last_soaks, turn_name
from drivelab.figures.kinds.latency.latency_histogram import histogram, latency_axis
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="histogram_by_turn",
        title="Latency histograms, turn by turn",
        caption=(
            "I/Os by latency at each point, both axes logarithmic. Lines mark the nines of the PTS that the "
            "number of I/Os can determine."
        ),
        tables=("latency_bins", "cells"),
        when=("turns",),
        place=230,
        rows="turns",
    ),
)

_MOST_PANELS = 9


@style.styled
def histogram_by_turn(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw a histogram of the last soak of each turn, with the nines of the PTS.

    Both tables hold the soaks of one recording that repeat over values. Raises ValueError for unsuitable tables.
    """
    soaks = last_soaks(latency_bins, cells)
    shown = soaks[:_MOST_PANELS]
    workloads = {str(cell["workload"]) for cell, _ in soaks}
    subject = f", {next(iter(workloads))}" if len(workloads) == 1 else ""
    figure = style.new_figure(f"Latency histograms{subject}", height_in=1.3 + 1.95 * len(shown))
    if len(shown) < len(soaks):
        style.note(figure, f"the first {len(shown)} of {len(soaks)} turns; all are in the tables")
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    everything = pd.concat([bins for _, bins in shown])
    for axes, (cell, bins) in zip(panels, shown, strict=True):
        histogram(axes, bins, turn_name(cell, len(workloads) > 1))
        latency_axis(axes, everything)
        axes.label_outer()
        axes.set_ylabel("I/Os (number),\nlog scale")
    most = max(panels, key=lambda axes: len(axes.get_lines()))
    ax.legend(figure, most)
    return figure
