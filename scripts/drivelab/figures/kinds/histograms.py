"""Histograms of latency with the nines of the PTS, of a soak and of the turns of a repeated step."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values.latency_values import merge_bins, percentiles_us
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import LATENCY, Texts, format_latency, format_number, grouped
from drivelab.figures.kinds.latency import last_soaks
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "latency_histogram", "Latency histogram",
        "I/Os by latency from submission to completion, both axes logarithmic. Lines mark the nines of the PTS that "
        "the number of I/Os can determine.",
        tables=("latency_bins",), when=("histogram",), place=190, rows="last_soak",
    ),
    FigureKind(
        "histogram_by_turn", "Latency histograms, turn by turn",
        "I/Os by latency at each point, both axes logarithmic. Lines mark the nines of the PTS that the number of "
        "I/Os can determine.",
        tables=("latency_bins", "cells"), when=("turns",), place=230, rows="turns",
    ),
)  # fmt: skip

_PERCENTS = (99.9, 99.99, 99.999)
_BINS_PER_DECADE = 40
"""Bins are six per cent wide: fio's own bins are narrower than a line."""
_FLOOR = 0.5
"""Number of I/Os at which the logarithmic axis begins: half of the smallest count."""
_COUNT = Texts(format_number, lambda count: "0" if count < 1 else grouped(count))
_MOST_CHARACTERS = 72
"""Length of a line above a panel."""


@style.styled
def latency_histogram(latency_bins: pd.DataFrame) -> Figure:
    """Draw I/Os by latency, both axes logarithmic, with lines at 99.9, 99.99 and 99.999 %.

    Latency is from submission to completion, from merged bins of one workload of one drive. A nine is marked if
    one I/O is above it. Raises ValueError for unsuitable tables.
    """
    for column in ("drive", "measurement", "kind", "workload"):
        selection.require_one(latency_bins, column, "latency_bins")
    figure = style.new_figure(f"Latency histogram, {latency_bins['workload'].iloc[0]}")
    axes = figure.subplots()
    histogram(axes, latency_bins)
    latency_axis(axes, latency_bins)
    ax.legend(figure, axes)
    return figure


def histogram(axes: Axes, bins: pd.DataFrame, name: str = "") -> None:
    """Draw the histogram of `bins`, with `name`, number of I/Os, mean and nines above it."""
    merged = merge_bins(bins[bins["count"] > 0])
    if merged.empty:
        raise ValueError("table 'latency_bins' has no I/Os")
    latency_us, counts = merged["latency_ns"].to_numpy(dtype=float) / 1e3, merged["count"].to_numpy(dtype=float)
    numbers = np.floor(np.log10(np.maximum(latency_us, 1e-3)) * _BINS_PER_DECADE).astype(int)
    edges = 10 ** (np.arange(numbers.min() - 1, numbers.max() + 3) / _BINS_PER_DECADE)
    heights = np.full(len(edges), _FLOOR)
    sums = np.bincount(numbers - numbers.min() + 1, weights=counts, minlength=len(edges))
    heights[sums > 0] = sums[sums > 0]
    colour = style.colours(1)[0]
    axes.fill_between(edges, heights, _FLOOR, step="post", color=colour, alpha=0.25, linewidth=0, gid="area")
    axes.plot(edges, heights, drawstyle="steps-post", color=colour, linewidth=1.2, label="I/Os", gid="line")
    numbers = [f"mean {format_latency(float(np.average(latency_us, weights=counts)))}"]
    for place, percent in enumerate(_PERCENTS):
        if counts.sum() * (1 - percent / 100) < 1 - 1e-9:
            continue
        at_us = float(percentiles_us(bins, [percent])[0])
        axes.axvline(at_us, color=style.ALARM, linestyle=style.DASHES[place], linewidth=1.3, label=f"{percent:g} %",
                     gid=f"{percent:g} %")  # fmt: skip
        numbers.append(f"{percent:g} % {format_latency(at_us)}")
    head, values = f"{f'{name}, ' if name else ''}{counts.sum():,.0f} I/Os:", ", ".join(numbers)
    gap = " " if len(head) + len(values) < _MOST_CHARACTERS else "\n"
    axes.set_title(f"{head}{gap}{values}", fontsize=style.SMALL_PT, loc="left", gid="numbers")


def latency_axis(axes: Axes, bins: pd.DataFrame) -> None:
    """Set logarithmic axes from the fastest to the slowest of `bins`."""
    latency_us = bins[bins["count"] > 0]["latency_ns"] / 1e3
    ax.log_axis(axes, "x", max(float(latency_us.min()), 0.1) / 1.1, max(float(latency_us.max()), 0.1) * 1.1,
                LATENCY)  # fmt: skip
    axes.set_xlabel("Latency, submission to completion (µs, ms, s), log scale")
    highest = max(float(np.max(line.get_ydata())) for line in axes.get_lines() if line.get_gid() == "line")
    ax.log_axis(axes, "y", _FLOOR * 1.25, highest * 1.6, _COUNT)
    axes.set_ylabel("I/Os (number), log scale")


_MOST_PANELS = 9


@style.styled
def histogram_by_turn(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw a histogram of the last soak of each turn, with the nines of the PTS.

    Both tables hold the soaks of one recording that repeat over values. Raises ValueError for unsuitable tables.
    """
    soaks, subject = last_soaks(latency_bins, cells)
    shown = soaks[:_MOST_PANELS]
    figure = style.new_figure(f"Latency histograms{subject}", height_in=1.3 + 1.95 * len(shown))
    if len(shown) < len(soaks):
        style.note(figure, f"the first {len(shown)} of {len(soaks)} turns; all are in the tables")
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    everything = pd.concat([bins for _, bins in shown])
    for axes, (name, bins) in zip(panels, shown, strict=True):
        histogram(axes, bins, name)
        latency_axis(axes, everything)
        axes.label_outer()
        axes.set_ylabel("I/Os (number),\nlog scale")
    most = max(panels, key=lambda axes: len(axes.get_lines()))
    ax.legend(figure, most)
    return figure
