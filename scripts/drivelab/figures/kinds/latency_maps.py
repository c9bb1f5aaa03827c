"""Maps of latency: by block size and mix, and over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from drivelab.analysis.values import latency_values
from drivelab.analysis.values.latency_values import has_ios_beyond, percentiles_us
from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import LATENCY, NUMBER, elapsed, format_latency
from drivelab.figures.families import maps
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "latency_matrix", "Latency: minimum, mean, maximum, five nines",
        "Latency of each cell in the measurement window: the minimum, the average of the rounds' means, the maximum, "
        "and the latency that 99.999 % of the I/Os do not exceed, from merged histograms. The colours have a common "
        "logarithmic scale. A dash means too few I/Os.",
        tables=("cells", "steady_state", "latency_bins"), when=("maximum",), place=85, rows="loops", one_loop=True,
        of_window=True,
    ),
    FigureKind(
        "latency_heat", "Latency over time",
        "Share of the I/Os of each slice of a soak by latency; darker is more. Lines are the median and the 99.9 % "
        "latency. Separate bands are separate paths through the drive: cache, flash, garbage collection.",
        tables=("latency_bins", "cells"), when=("sliced",), place=320,
    ),
)  # fmt: skip

_NINES_PCT = 99.999


@style.styled
def latency_matrix(cells: pd.DataFrame, steady_state: pd.DataFrame, latency_bins: pd.DataFrame) -> Figure:
    """Draw tables of latencies: rows by block size, columns by read share, as in the reports of TKperf.

    The tables hold one drive and run. Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, "steady_state")
    selection.require(latency_bins, "latency_bins")
    cells = selection.one_measurement(cells)
    tables = {
        name: selection.window_averages(cells, steady_state, metric)
        for name, metric in (
            ("Minimum", "min_latency_us"),
            ("Mean", "mean_latency_us"),
            ("Maximum", "max_latency_us"),
        )
    }
    columns = cells[["recording", "step"]].drop_duplicates()
    inside = selection.window_rows(latency_bins.merge(columns), steady_state)
    tables[f"{_NINES_PCT:g} %"] = _five_nines(inside, tables["Mean"])
    figure = style.new_figure("Latency by block size and read/write mix")
    values = np.concatenate([table.to_numpy(dtype=float).ravel() for table in tables.values()])
    values = values[np.isfinite(values) & (values > 0)]
    norm = LogNorm(values.min(), max(values.max(), 1.01 * values.min()))
    for axes, (name, table) in zip(figure.subplots(2, 2).flat, tables.items(), strict=True):
        shown = np.ma.masked_invalid(table.to_numpy(dtype=float))
        axes.pcolormesh(shown, norm=norm, cmap="Blues", edgecolors="white", gid="map")
        for (row, column), value in np.ndenumerate(table.to_numpy(dtype=float)):
            dark = np.isfinite(value) and norm(value) > 0.6
            axes.text(column + 0.5, row + 0.5, format_latency(value) if np.isfinite(value) else "\N{EN DASH}",
                      ha="center", va="center", fontsize=style.SMALL_PT, color="white" if dark else "#222222",
                      gid="number")  # fmt: skip
        axes.set_title(name)
        axes.set_xticks(np.arange(len(table.columns)) + 0.5, list(table.columns))
        axes.set_yticks(np.arange(len(table.index)) + 0.5, [format_size(int(size)) for size in table.index])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_xlabel("Read/write mix (%)")
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


def _five_nines(bins: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return five nines of each cell with the axes of `like`; NaN with no I/O above it."""
    table = pd.DataFrame(np.nan, index=like.index, columns=like.columns)
    names = ["block_size_bytes", "pattern", "read_share_pct"]
    several = any(" " in column for column in like.columns)
    for (size, pattern, share), part in bins.groupby(names):
        column = selection.mix(pattern, share, several=several)
        if has_ios_beyond(float(part["count"].sum()), _NINES_PCT):
            table.loc[size, column] = float(percentiles_us(part, [_NINES_PCT])[0])
    return table


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
    x = np.append(begins, heat["end_s"].max()) / time.divisor
    y = 10 ** (float(lows.min()) + step * np.arange(rows.max() + 2))
    norm = LogNorm(min(max(float(share.min()), _PALEST_PCT), 1.0), 100)
    cells_of = maps.cells((rows.max() + 1, len(begins)), rows, columns, share)
    mesh = maps.draw(axes, x, y, cells_of, norm)
    _quantiles(axes, timed, x)
    room = max(1.0, (_LEAST_REACH * y[0] / y[-1]) ** 0.5)
    ax.log_axis(axes, "y", y[0] * 1.25 / room, y[-1] / 1.25 * room, LATENCY)
    axes.set_ylabel("Latency (µs, ms, s), log scale")
    ax.write(axes.xaxis, NUMBER)
    words.time(axes.xaxis, time.divisor)
    axes.set_xlabel(f"Time since the measurement began ({time.unit})")
    maps.colour_bar(figure, mesh, beside, "Share of the slice's I/Os (%)", "{:g}".format)
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
