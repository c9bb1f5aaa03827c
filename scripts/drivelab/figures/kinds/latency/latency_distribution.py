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
def latency_distribution(latency_bins: pd.DataFrame, *, by: str = "drive", kind: str | None = None) -> Figure:
    """Draw exceedance curves of latency from merged histogram bins; both axes logarithmic.

    Latency is from submission to completion. `by` is `drive` (one workload, a line per drive) or `cell` (one drive, a
    line per workload). `kind` keeps only the bins of that kind of step, for example `soak`. Reads and writes of a cell
    are merged. Raises ValueError for unsuitable tables.
    """
    selection.require(latency_bins, "latency_bins")
    if by not in ("drive", "cell"):
        raise ValueError(f"by '{by}' is neither 'drive' nor 'cell'")
    bins = latency_bins[latency_bins["count"] > 0]
    bins = selection.rows(bins, "latency_bins", kind=kind) if kind is not None else bins
    selection.require(bins, "latency_bins")
    apart = ["pattern", "read_share_pct", "block_size_bytes"]
    for column in ("measurement", "kind", *(apart if by == "drive" else ["drive"])):
        selection.require_one(bins, column, "latency_bins")
    groups = [(str(drive), bins[bins["drive"] == drive]) for drive in bins["drive"].drop_duplicates()]
    if by == "cell":
        groups = [
            (selection.workload(pattern, size, share), group)
            for (size, share, pattern), group in bins.groupby(["block_size_bytes", "read_share_pct", "pattern"])
        ]

    figure = style.new_figure("Latency distribution")
    axes = figure.subplots()
    palette = style.colours(len(groups)) if by == "drive" else style.ordered_colours(len(groups))
    smallest = 1.0
    for number, (name, group) in enumerate(groups):
        curve = exceedance(group)
        smallest = min(smallest, curve.min())
        tail = curve[curve <= _TAIL[0]]
        if len(tail):
            name = f"{name}: {_TAIL[1]} in {format_latency(curve[curve > _TAIL[0]].index[-1])}"
        axes.plot(
            curve.index,
            curve,
            drawstyle="steps-pre",
            color=palette[number],
            linestyle=style.DASHES[number % 4],
            label=name,
            gid="line",
        )
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
