"""Latency distribution: share of I/Os by latency, with nines on the y axis."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.registry import FigureKind

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
