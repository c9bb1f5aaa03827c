"""Latencies: distributions, histograms, and by block size and mix."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from drivelab.analysis.values.latency_values import NINES, has_ios_beyond, merge_bins, percentiles_us
from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import (
    LATENCY,
    Texts,
    format_latency,
    format_number,
    grouped,
)
from drivelab.figures.families.curves import COMPLETION, Curve, Curves, exceedance
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        "latency_distribution", "Latency distribution",
        "Share of the I/Os of each drive's last soak that were faster than a latency, both axes logarithmic: each step "
        "up is one more nine. Latency is from submission to completion; the bins of all slices are merged. The legend "
        "has the highest percentile above which every drive has at least ten I/Os.",
        tables=("latency_bins",), when=("histogram", "nines", "drives_latency"), place=180, rows="last_soak",
    ),
    FigureKind(
        "latency_histogram", "Latency histogram",
        "I/Os by latency from submission to completion, both axes logarithmic, of the last soak at each point. Lines "
        "mark the nines of the PTS that the number of I/Os can determine.",
        tables=("latency_bins", "cells"), when=("histogram", "turns"), place=190, rows="turns",
    ),
    FigureKind(
        "latency_matrix", "Latency: minimum, mean, maximum, five nines",
        "Latency of each cell in the measurement window: the minimum, the average of the rounds' means, the maximum, "
        "and the latency that 99.999 % of the I/Os do not exceed, from merged histograms. The colours have a common "
        "logarithmic scale. A dash means too few I/Os.",
        tables=("cells", "steady_state", "latency_bins"), when=("maximum",), place=85, rows="loops", one_loop=True,
        of_window=True,
    ),
)  # fmt: skip


_FEW_IOS = 10
"""With fewer I/Os above it, a quantile is unreliable (our choice)."""
_DEEPEST = 1e-6
"""Share of I/Os beyond 99.9999 %: a recording cannot determine rarer ones."""


def latency_distribution(latency_bins: pd.DataFrame) -> Figure:
    """Draw the share of I/Os of each drive's last soak that took at least so long, tail at the top.

    Latency is from submission to completion; reads and writes, and runs of a drive, are merged. Both axes are
    logarithmic; the legend has the highest of the nines above which each drive has ten I/Os.
    """
    bins = overlay.bins_by_drive(latency_bins)
    looks = overlay.looks(bins)
    fewest = min(int(part["count"].sum()) for part in bins.values())
    percents = [percent for percent in NINES.values() if fewest * (100 - percent) / 100 >= _FEW_IOS]
    percent = max(percents, default=50.0)
    curves, rows = [], []
    for name, look in looks.items():
        share = exceedance(bins[name]["latency_ns"] / 1e3, bins[name]["count"])
        if len(share) == 1:  # add a step there, half way to a share of zero
            share = pd.concat([share, pd.Series(0.5 / bins[name]["count"].sum(), index=share.index)])
        text = f"{name}: {percent:g} % {format_latency(float(percentiles_us(bins[name], [percent])[0]))}"
        curves.append(Curve(text, share, look.colour, look.dash, look.marker if len(looks) > 1 else ""))
        rows.append(pd.DataFrame({"latency_us": share.index, "share": share.to_numpy(), "drive": name}))
    title = f"Latency distribution, {next(iter(bins.values()))['workload'].iloc[0]}"
    figure = Curves(least=0.01, deepest=_DEEPEST).draw(title, {COMPLETION: curves})
    overlay.note_coinciding(figure, pd.concat(rows), ["latency_us"], ["share"])
    return figure


def last_soaks(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> tuple[list[tuple[str, pd.DataFrame]], str]:
    """Return name and bins with I/Os of the last soak of each turn, and the end of a title, the common workload.

    A turn has the name of its point with the demand, else of its workload, else of its value. Raises ValueError for
    none.
    """
    selection.require(latency_bins, "latency_bins")
    selection.require_one(cells, "recording", "cells")
    turns = overlay.turns(cells)
    bins = overlay.turns(latency_bins[latency_bins["count"] > 0])
    last = [step for step in turns.groupby("phase_value", sort=False)["step"].max() if (bins["step"] == step).any()]
    if not last:
        raise ValueError("table 'latency_bins' has no soaks that are repeated over values")
    turns = turns.drop_duplicates("step").set_index("step").loc[last]
    several = turns["workload"].nunique() > 1
    soaks = []
    for step, turn in turns.iterrows():
        name = str(turn["workload"] if several else turn["phase_value"])
        if isinstance(turn["point"], str):
            name = f"{turn['point'].upper()} ({demand(int(turn['threads']), int(turn['queue_depth']))})"
        soaks.append((name, bins[bins["step"] == step]))
    return soaks, "" if several else f", {turns['workload'].iloc[0]}"


_MARKED_PCT = (99.9, 99.99, 99.999)
_BINS_PER_DECADE = 40
"""Bins are six per cent wide: fio's own bins are narrower than a line."""
_FLOOR = 0.5
"""Number of I/Os at which the logarithmic axis begins: half of the smallest count."""
_COUNT = Texts(format_number, lambda count: "0" if count < 1 else grouped(count))
_MOST_CHARACTERS = 72
"""Length of a line above a panel."""
_MOST_PANELS = 9


def latency_histogram(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw I/Os by latency, both axes logarithmic, with lines at 99.9, 99.99 and 99.999 %.

    Latency is from submission to completion, from merged bins of the soaks of one recording; soaks that repeat over
    values have a panel for each turn. A nine is marked if one I/O is above it.
    """
    selection.require_one(cells, "recording", "cells")
    selection.require(latency_bins, "latency_bins")
    if latency_bins["phase_value"].notna().any():
        named, title = last_soaks(latency_bins, cells)
    else:
        named, title = [("", latency_bins)], f", {selection.require_one(latency_bins, 'workload', 'latency_bins')}"
    shown = [(name, merge_bins(bins[bins["count"] > 0])) for name, bins in named[:_MOST_PANELS]]
    figure = style.new_figure(f"Latency histogram{title}", height_in=max(style.HEIGHT_IN, 1.3 + 1.95 * len(shown)))
    if len(shown) < len(named):
        style.note(figure, f"the first {len(shown)} of {len(named)} turns; all are in the tables")
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    fastest, slowest = (getattr(pd.concat([bins["latency_ns"] for _, bins in shown]), end)() for end in ("min", "max"))
    for axes, (name, bins) in zip(panels, shown, strict=True):
        highest = _histogram(axes, bins, name)
        ax.log_axis(axes, "x", max(fastest / 1e3, 0.1) / 1.1, max(slowest / 1e3, 0.1) * 1.1, LATENCY)
        ax.log_axis(axes, "y", _FLOOR * 1.25, highest * 1.6, _COUNT)
        axes.set(xlabel=COMPLETION, ylabel="I/Os (number),\nlog scale")
        axes.label_outer()
    ax.legend(figure, max(panels, key=lambda axes: len(axes.get_lines())))
    return figure


def _histogram(axes: Axes, bins: pd.DataFrame, name: str) -> float:
    """Draw the histogram of `bins`, with `name`, number of I/Os, mean and nines above it; return the highest count."""
    if bins.empty:
        raise ValueError("table 'latency_bins' has no I/Os")
    latency_us, counts = bins["latency_ns"].to_numpy(dtype=float) / 1e3, bins["count"].to_numpy(dtype=float)
    places = np.floor(np.log10(np.maximum(latency_us, 1e-3)) * _BINS_PER_DECADE).astype(int)
    edges = 10 ** (np.arange(places.min() - 1, places.max() + 3) / _BINS_PER_DECADE)
    sums = np.bincount(places - places.min() + 1, weights=counts, minlength=len(edges))
    heights = np.where(sums > 0, sums, _FLOOR)
    colour = style.colours(1)[0]
    axes.fill_between(edges, heights, _FLOOR, step="post", color=colour, alpha=0.25, linewidth=0, gid="area")
    axes.plot(edges, heights, drawstyle="steps-post", color=colour, linewidth=1.2, label="I/Os", gid="line")
    numbers = [f"mean {format_latency(float(np.average(latency_us, weights=counts)))}"]
    for percent, dash in zip(_MARKED_PCT, style.DASHES, strict=False):
        if counts.sum() * (1 - percent / 100) < 1 - 1e-9:
            continue
        at_us = float(percentiles_us(bins, [percent])[0])
        axes.axvline(at_us, color=style.ALARM, linestyle=dash, linewidth=1.3, label=f"{percent:g} %",
                     gid=f"{percent:g} %")  # fmt: skip
        numbers.append(f"{percent:g} % {format_latency(at_us)}")
    head, values = f"{f'{name}, ' if name else ''}{counts.sum():,.0f} I/Os:", ", ".join(numbers)
    gap = " " if len(head) + len(values) < _MOST_CHARACTERS else "\n"
    axes.set_title(f"{head}{gap}{values}", fontsize=style.SMALL_PT, loc="left", gid="numbers")
    return float(heights.max())


_NINES_PCT = 99.999
_METRICS = {"Minimum": "min_latency_us", "Mean": "mean_latency_us", "Maximum": "max_latency_us"}


def latency_matrix(cells: pd.DataFrame, steady_state: pd.DataFrame, latency_bins: pd.DataFrame) -> Figure:
    """Draw tables of latencies of one drive and run, rows by block size, columns by mix, as TKperf does."""
    selection.require(steady_state, "steady_state")
    selection.require(latency_bins, "latency_bins")
    cells = selection.one_measurement(cells)
    tables = {name: selection.window_averages(cells, steady_state, metric) for name, metric in _METRICS.items()}
    inside = selection.window_rows(latency_bins.merge(cells[["recording", "step"]].drop_duplicates()), steady_state)
    tables[f"{_NINES_PCT:g} %"] = _five_nines(inside, tables["Mean"])
    figure = style.new_figure("Latency by block size and read/write mix")
    values = pd.concat(tables.values()).stack()
    values = values[values > 0]
    norm = LogNorm(values.min(), max(values.max(), 1.01 * values.min()))
    for axes, (name, table) in zip(figure.subplots(2, 2).flat, tables.items(), strict=True):
        axes.pcolormesh(np.ma.masked_invalid(table.to_numpy(float)), norm=norm, cmap="Blues", edgecolors="white",
                        gid="map")  # fmt: skip
        for (row, column), value in np.ndenumerate(table.to_numpy(dtype=float)):
            known = np.isfinite(value)
            axes.text(column + 0.5, row + 0.5, format_latency(value) if known else "\N{EN DASH}", ha="center",
                      va="center", fontsize=style.SMALL_PT, gid="number",
                      color="white" if known and norm(value) > 0.6 else style.INK)  # fmt: skip
        axes.set(title=name, xlabel="Read/write mix (%)")
        axes.set_xticks(np.arange(len(table.columns)) + 0.5, list(table.columns))
        axes.set_yticks(np.arange(len(table.index)) + 0.5, [format_size(int(size)) for size in table.index])
        axes.invert_yaxis()
        axes.grid(visible=False)
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


def _five_nines(bins: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return five nines of each cell with the axes of `like`; NaN with no I/O above it."""
    table = pd.DataFrame(np.nan, index=like.index, columns=like.columns)
    several = any(" " in column for column in like.columns)
    for (size, pattern, share), part in bins.groupby(["block_size_bytes", "pattern", "read_share_pct"]):
        if has_ios_beyond(float(part["count"].sum()), _NINES_PCT):
            column = selection.mix(pattern, share, several=several)
            table.loc[size, column] = float(percentiles_us(part, [_NINES_PCT])[0])
    return table
