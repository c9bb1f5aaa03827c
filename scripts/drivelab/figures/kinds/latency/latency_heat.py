"""Heat map of the latency of a soak's I/Os against time."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from drivelab.analysis.values import latency_values
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import elapsed, format_latency
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="latency_heat",
        title="Latency over time",
        caption=(
            "Share of the I/Os of each slice of a soak by latency; darker is more. Lines are the median and "
            "the 99.9 % latency. Separate bands are separate paths through the drive: cache, flash, garbage "
            "collection."
        ),
        tables=("latency_bins", "cells"),
        when=("sliced",),
        place=320,
    ),
)

_COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.88, 0.0, 256)))
"""Dark means many; no colour is too pale for paper."""
_MOST_COLUMNS = 240
"""Maximum number of columns; more slices are merged."""
_LINES = {50.0: ("median", "#d55e00", "-"), 99.9: ("99.9 %", "#d55e00", "--")}
_PALEST_PCT = 1e-4
_LEAST_REACH = 3.0
"""Smallest ratio of the ends of the latency axis, so that one bin does not fill the picture."""
_FEWEST_IOS = 1000
"""Smallest number of I/Os that determine the 99.9 % latency of a column."""


@style.styled
def latency_heat(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the share of I/Os of each slice by latency for one recording's longest soak.

    Lines are the median and, where a column has enough I/Os, the 99.9 % latency. Raises ValueError for unsuitable
    tables.
    """
    selection.require(cells, "cells")
    selection.require_one(latency_bins, "recording", "latency_bins")
    timed = _columns(latency_values.timed_bins(_longest(latency_bins), cells))
    if timed.empty:
        raise ValueError("table 'cells' has no slices of the soaks in table 'latency_bins'")
    heat = latency_values.latency_heat(timed)
    time = elapsed(float(heat["end_s"].max()))
    workload = latency_bins[latency_bins["step"].isin(timed["step"])]["workload"].iloc[0]
    figure = style.new_figure(f"Latency over time, {workload}")
    axes, beside = figure.subplots(1, 2, width_ratios=style.WITH_COLOUR_BAR)
    begins, lows = np.unique(heat["begin_s"]), np.log10(heat["low_us"])
    step = 1 / latency_values.HEAT_BINS_PER_DECADE
    rows = np.rint((lows - lows.min()) / step).astype(int).to_numpy()
    columns = np.searchsorted(begins, heat["begin_s"].to_numpy())
    share = 100 * heat["count"] / heat.groupby("begin_s")["count"].transform("sum")
    grid = np.full((rows.max() + 1, len(begins)), np.nan)
    grid[rows, columns] = share
    x = np.append(begins, heat["end_s"].max()) / time.divisor
    y = 10 ** (float(lows.min()) + step * np.arange(len(grid) + 1))
    # An image, as thousands of cells as paths would take megabytes.
    norm = LogNorm(min(max(float(share.min()), _PALEST_PCT), 1.0), 100)
    mesh = axes.pcolormesh(x, y, np.ma.masked_invalid(grid), norm=norm, cmap=_COLOURS, rasterized=True, gid="map")
    _quantiles(axes, timed, x)
    room = max(1.0, (_LEAST_REACH * y[0] / y[-1]) ** 0.5)
    ax.log_axis(axes, "y", y[0] * 1.25 / room, y[-1] / 1.25 * room, format_latency)
    axes.set_ylabel("Latency (µs, ms, s), log scale")
    axes.set_xlim(x[0], x[-1])
    ax.plain_numbers(axes, "x")
    words.time(axes.xaxis, time.divisor)
    axes.set_xlabel(f"Time since the measurement began ({time.unit})")
    axes.grid(visible=False)
    bar = figure.colorbar(mesh, cax=beside)
    bar.set_label("Share of the slice's I/Os (%), log scale")
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    bar.ax.minorticks_off()
    ax.legend(figure, axes)
    return figure


def _longest(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the bins of the soak with the most slices; consecutive soaks of one workload are one soak."""
    soaks = bins[(bins["kind"] == "soak") & bins["phase"].isna()]
    if soaks.empty:
        raise ValueError("table 'latency_bins' has no soaks for this figure")
    slices = soaks.drop_duplicates(["step", "round"]).groupby("step").agg(slices=("round", "size"),
                                                                          workload=("workload", "first"))  # fmt: skip
    fresh = slices["workload"].ne(slices["workload"].shift()) | (slices.index.to_series().diff() != 1)
    stretch = fresh.cumsum()
    longest = slices.groupby(stretch)["slices"].sum().idxmax()
    return soaks[soaks["step"].isin(stretch.index[stretch == longest])]


def _columns(timed: pd.DataFrame) -> pd.DataFrame:
    """Add begin_s and end_s of each slice's column of the picture; merge slices if there are too many."""
    begins = np.unique(timed["begin_s"])
    each = -(-len(begins) // _MOST_COLUMNS)
    column = np.searchsorted(begins, timed["begin_s"].to_numpy()) // each
    spans = timed.groupby(column)
    return timed.assign(begin_s=spans["begin_s"].transform("min"), end_s=spans["end_s"].transform("max"))


def _quantiles(axes: Axes, timed: pd.DataFrame, edges: np.ndarray) -> None:
    """Draw the lines by the rule of `latency.percentiles_us`, for all columns at once."""
    merged = latency_values.merge_bins(timed, ["begin_s"])
    reached = merged.groupby("begin_s")["count"].cumsum()
    ios = merged.groupby("begin_s")["count"].transform("sum")
    middle = (edges[:-1] + edges[1:]) / 2
    for percent, (name, colour, dash) in _LINES.items():
        there = merged[reached >= percent / 100 * ios * (1 - 1e-12)].groupby("begin_s")["latency_ns"].first() / 1000
        enough = (percent <= 50) | (merged.groupby("begin_s")["count"].sum() >= _FEWEST_IOS)
        values = there.where(enough)
        if values.notna().any():
            x, y = (edges, values.repeat(2)) if len(values) == 1 else (middle, values)  # a point is invisible
            axes.plot(x, y, color=colour, linestyle=dash, linewidth=1.4, label=name, gid=name)
