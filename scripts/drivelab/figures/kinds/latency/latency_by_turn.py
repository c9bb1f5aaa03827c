"""Latency distributions of a repeated step, such as the points MAX, MID and MIN of a sweep."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.kinds.latency.latency_distribution import exceedance, nines_axis
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        name="latency_by_turn",
        title="Latency distribution, turn by turn",
        caption=(
            "Share of I/Os that were as fast, a line for each turn of the repeated step, such as the points "
            "MAX, MID and MIN of a demand sweep. From merged histograms of the whole last soak of each turn. "
            "Darker lines are at 99, 99.9, 99.99 and 99.999 %."
        ),
        tables=("latency_bins", "cells"),
        when=("turns",),
        place=220,
        rows="turns",
    ),
)

_TAIL = (0.001, "99.9 %")


@style.styled
def latency_by_turn(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the exceedance curve of latency of the last soak of each turn.

    Both tables hold the soaks of one recording that repeat over values. Raises ValueError for unsuitable tables.
    """
    soaks = last_soaks(latency_bins, cells)
    workloads = {str(cell["workload"]) for cell, _ in soaks}
    subject = f", {next(iter(workloads))}" if len(workloads) == 1 else ""

    figure = style.new_figure(f"Latency distribution{subject}")
    axes = figure.subplots()
    smallest = 1.0
    for place, ((cell, bins), colour) in enumerate(zip(soaks, style.colours(len(soaks)), strict=True)):
        curve = exceedance(bins)
        smallest = min(smallest, float(curve.min()))
        name = turn_name(cell, len(workloads) > 1)
        if float(curve.min()) <= _TAIL[0]:
            name = f"{name}: {_TAIL[1]} in {format_latency(float(curve[curve > _TAIL[0]].index[-1]))}"
        axes.plot(curve.index, curve, drawstyle="steps-pre", color=colour, linestyle=style.DASHES[place % 4],
                  label=name, gid="line")  # fmt: skip
    nines_axis(axes, pd.concat([bins for _, bins in soaks]), smallest)
    ax.legend(figure, axes)
    return figure


def last_soaks(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> list[tuple[pd.Series, pd.DataFrame]]:
    """Return a cell and the bins with I/Os of the last soak of each turn; raises ValueError for none."""
    selection.require(latency_bins, "latency_bins")
    selection.require_one(cells, "recording", "cells")
    turns = cells[(cells["kind"] == "soak") & cells["phase_value"].notna()]
    bins = latency_bins[(latency_bins["kind"] == "soak") & latency_bins["phase_value"].notna()]
    bins = bins[bins["count"] > 0]
    last = turns.groupby("phase_value", sort=False)["step"].max()
    soaks = [(turns[turns["step"] == step].iloc[0], bins[bins["step"] == step]) for step in last]
    soaks = [(cell, part) for cell, part in soaks if len(part)]
    if not soaks:
        raise ValueError("table 'latency_bins' has no soaks that are repeated over values")
    return soaks


def turn_name(cell: pd.Series, by_workload: bool) -> str:
    """Return the name of a turn: its point with the demand, else its workload, else its value."""
    if isinstance(cell["point"], str):
        return f"{cell['point'].upper()} ({demand(int(cell['threads']), int(cell['queue_depth']))})"
    return str(cell["workload"]) if by_workload else str(cell["phase_value"])
