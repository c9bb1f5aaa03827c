"""Share of I/Os by latency, with nines on the y axis: of drives, and of the turns of a repeated step."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values.latency_values import NINES, percentiles_us
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        name="latency_distribution",
        title="Latency distribution",
        caption=(
            "Share of the last soak's I/Os that were faster than a latency, both axes logarithmic: each step "
            "up is one more nine. Latency is from submission to completion; the bins of all slices are merged."
        ),
        tables=("latency_bins",),
        when=("histogram",),
        place=180,
        rows="last_soak",
    ),
    FigureKind(
        name="exceedance_of_drives",
        title="Latency distribution of all drives",
        caption=(
            "Share of each drive's I/Os that were faster than a latency, up to 99.9999 %. The legend has the "
            "highest percentile above which every drive has at least ten I/Os."
        ),
        tables=("latency_bins",),
        when=("drives_latency",),
        place=323,
    ),
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
def latency_distribution(latency_bins: pd.DataFrame) -> Figure:
    """Draw exceedance curves of latency from merged histogram bins; both axes logarithmic.

    Latency is from submission to completion. All bins are of one workload, with a line for each drive; reads and writes
    are merged. Raises ValueError for unsuitable tables.
    """
    selection.require(latency_bins, "latency_bins")
    bins = latency_bins[latency_bins["count"] > 0]
    for column in ("measurement", "kind", "pattern", "read_share_pct", "block_size_bytes"):
        selection.require_one(bins, column, "latency_bins")
    groups = list(bins.groupby("drive", sort=False))
    figure = style.new_figure("Latency distribution")
    axes = figure.subplots()
    smallest = 1.0
    for number, ((drive, group), colour) in enumerate(zip(groups, style.colours(len(groups)), strict=True)):
        curve = exceedance(group)
        smallest = min(smallest, curve.min())
        name = str(drive)
        if (curve <= _TAIL[0]).any():
            name += f": {_TAIL[1]} in {format_latency(curve[curve > _TAIL[0]].index[-1])}"
        axes.plot(curve.index, curve, drawstyle="steps-pre", color=colour, linestyle=style.DASHES[number % 4],
                  label=name, gid="line")  # fmt: skip
    nines_axis(axes, bins, smallest)
    ax.legend(figure, axes)
    return figure


def nines_axis(axes: Axes, bins: pd.DataFrame, smallest: float) -> None:
    """Set up the axes of an exceedance curve: latency, and nines down to the share `smallest`."""
    fastest, slowest = bins["latency_ns"].min() / 1e3, bins["latency_ns"].max() / 1e3
    ax.log_axis(axes, "x", max(fastest, 0.1), max(slowest, 0.1), format_latency)
    axes.set_xlabel("Latency, submission to completion (µs, ms, s), log scale")
    ax.nines_axis(axes, smallest / 2, "Faster I/Os (% of all), log scale")


def exceedance(bins: pd.DataFrame) -> pd.Series:
    """Return the share of I/Os that took at least so long (1 at first), by ascending latency in µs."""
    counts = bins.groupby("latency_ns")["count"].sum().sort_index().astype(float)
    share = counts[::-1].cumsum()[::-1] / counts.sum()
    share.index = share.index / 1e3
    return share


_LEAST_DEEP = 0.01
_DEEPEST = 1e-6
"""Share of I/Os beyond 99.9999 %: a recording cannot determine rarer ones."""


@style.styled
def exceedance_of_drives(latency_bins: pd.DataFrame) -> Figure:
    """Draw the share of I/Os of each drive's last soak that took at least so long, tail at the top.

    Both axes are logarithmic. The legend has the highest of the nines above which every drive has at least ten I/Os.
    Runs of a drive are merged. Raises ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    every = pd.concat(bins.values())
    percent = _deepest_nine(bins)
    figure = style.new_figure(f"Latency distribution of all drives, {every['workload'].iloc[0]}")
    axes = figure.subplots()
    smallest = 1.0
    curves = {drive: _with_a_step(exceedance(part), int(part["count"].sum())) for drive, part in bins.items()}
    rows = [curve.rename_axis("latency_us").rename("share").reset_index().assign(drive=drive)
            for drive, curve in curves.items()]  # fmt: skip
    overlay.note_coinciding(figure, pd.concat(rows), ["latency_us"], ["share"])
    for drive, look in overlay.looks(bins).items():
        curve = curves[drive]
        smallest = min(smallest, float(curve.min()))
        latency = format_latency(float(percentiles_us(bins[drive], [percent])[0]))
        axes.plot(curve.index, curve, drawstyle="steps-pre", color=look.colour, linestyle=look.dash,
                  marker=look.marker, markevery=max(1, len(curve) // 8), markersize=4.5,
                  label=f"{drive}: {percent:g} % in {latency}", gid="line")  # fmt: skip
    nines_axis(axes, every, min(max(smallest, _DEEPEST), _LEAST_DEEP))
    ax.legend(figure, axes)
    return figure


def _with_a_step(curve: pd.Series, ios: int) -> pd.Series:
    """Return the curve; with a single latency add a step there, half way to a share of zero."""
    return curve if len(curve) > 1 else pd.concat([curve, pd.Series(0.5 / ios, index=curve.index)])


def _deepest_nine(bins: dict[str, pd.DataFrame]) -> float:
    """Return the highest percentile above which every drive has ten I/Os, else the median."""
    fewest = min(int(part["count"].sum()) for part in bins.values())
    return max((percent for percent in NINES.values() if fewest * (100 - percent) / 100 >= 10), default=50.0)


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
