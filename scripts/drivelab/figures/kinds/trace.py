"""Traces over time: queue depth, footprint, and addresses; shared parts of all figures of traces."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drivelab.core.units import format_amount, format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import NUMBER, Quantity, elapsed, format_number, format_time, volume
from drivelab.figures.families import maps
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "trace_depth", "Queue depth over time",
        "Requests in flight in each interval, counted from queueing and from dispatch to completion: the mean above, "
        "the maximum below.",
        tables=("trace_over_time", "trace_overview"), when=("trace",), place=490, status="trace_overview",
    ),
    FigureKind(
        "trace_footprint", "Footprint over time",
        "Blocks that the trace has read or written so far, each counted once, and the blocks that it accesses in "
        "each interval.",
        tables=("trace_over_time",), when=("trace",), place=450, status="trace_overview",
    ),
    FigureKind(
        "trace_heat", "Access over time and address",
        "Start addresses of reads and writes over time; darker cells have more of them.",
        tables=("trace_heat", "trace_over_time"), when=("trace",), place=500, status="trace_overview",
    ),
)  # fmt: skip

DIRECTIONS = {
    "read": "#0173b2",
    "write": "#de8f05",
    "flush": "#029e73",
    "discard": "#cc78bc",
    "write-zeroes": "#949494",
}
"""Colour of each operation in all figures, from seaborn's palette for colour-blind readers."""
LINES = {"read": "-", "write": "--", "flush": ":", "discard": "-.", "write-zeroes": (0, (1, 3))}
_LINE_IN = 0.165


def label(figure: Figure, overview: pd.Series) -> None:
    """Label a figure with the trace's name, size, marks and notes, from a row of `trace_overview`."""
    style.badges_of_trace(figure, overview["marks"])
    style.label(
        figure,
        reduced=False,
        virtual="virtual" in overview["marks"],
        clock="wall",
        subject=f"{overview['trace']}: {_extent(int(overview['requests']), float(overview['duration_s']))}",
    )
    if len(overview["notes"]):
        notes = "; ".join(overview["notes"])
        style.note(figure, notes[0].upper() + notes[1:])
        # The header lines would make the axes smaller.
        style.grow(figure, _LINE_IN * (2 + len(notes) // 95))


def _extent(requests: int, duration_s: float) -> str:
    many = _many(requests, "requests")
    return f"{many} in {format_time(duration_s)}" if duration_s else f"{many} at one instant"


def nothing(title: str, reason: str) -> Figure:
    """Return a figure that says why there is nothing to show, as the file must exist."""
    figure = style.new_figure(title, height_in=2.0)
    figure.text(0.5, 0.3, textwrap.fill(reason, 80), ha="center", color=style.MUTED, gid="nothing", in_layout=False)
    return figure


def time_axis(axes: Axes, end_s: float) -> float:
    """Label and limit an x axis of time since the first request; return the divisor for seconds."""
    scale = elapsed(end_s, "Time since the first request")
    axes.set_xlim(0, end_s / scale.divisor or 1.0)
    axes.set_xlabel(scale.label)
    words.time(axes.xaxis, scale.divisor)
    ax.write(axes.xaxis, NUMBER)
    return scale.divisor


def steps(axes: Axes, heights: pd.Series, edges: np.ndarray, name: str, colour: str, **look: Any) -> None:
    """Draw a value for each interval as a line of steps, or filled with `fill`."""
    look = {"linewidth": 1.6, "baseline": None} | look if not look.get("fill") else look
    axes.stairs(heights.to_numpy(float), edges, color=colour, label=name, **look)


def edges_s(over_time: pd.DataFrame) -> np.ndarray:
    """Return the edges of the intervals, shape (rows + 1,)."""
    return np.append(over_time["begin_s"].to_numpy(float), over_time["end_s"].iloc[-1])


_DEPTHS = {"queue": ("queued to completed", "read", "-"),
           "dispatch": ("dispatched to completed: at the drive", "write", "--")}  # fmt: skip
"""Name, colour and dash of each depth."""


@style.styled
def trace_depth(over_time: pd.DataFrame, overview: pd.DataFrame) -> Figure:
    """Draw mean and maximum depth of each interval, from tables `trace_over_time` and `trace_overview`.

    Raises ValueError for unsuitable tables.
    """
    selection.require(over_time, "trace_over_time")
    selection.require(overview, "trace_overview")
    title, facts = "Queue depth over time", overview.iloc[0]
    if not facts["duration_s"]:
        return nothing(title, "The trace has no duration, so there is no depth over time.")
    known = [name for name in _DEPTHS if over_time[f"{name}_depth_mean"].notna().any()]
    if not known:
        return nothing(title, "The trace has no completion times, so the depth is unknown.")
    edges = edges_s(over_time)
    figure = style.new_figure(title, height_in=5.0)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, statistic, names, label in ((panels[0], "mean", known, "Mean depth"),
                                          (panels[1], "max", known[:1], "Largest depth")):  # fmt: skip
        divisor = time_axis(axes, float(edges[-1]))
        shown = {name: depth for name in names if (depth := over_time[f"{name}_depth_{statistic}"]).notna().any()}
        for name, depth in shown.items():
            words, operation, dash = _DEPTHS[name]
            steps(axes, depth, edges / divisor, words, DIRECTIONS[operation], linestyle=dash,
                         gid=str(depth.name))  # fmt: skip
        largest = max((float(depth.max()) for depth in shown.values()), default=0.0)
        ax.scale_y(axes, [largest], Quantity(label, "requests"))
        if not shown:
            axes.text(0.5, 0.5, "unknown: too many requests in flight", transform=axes.transAxes, ha="center")
    panels[0].set_xlabel("")
    missing = int(facts["without_completion"])
    if missing:
        style.note(figure, f"{missing:,} of {facts['requests']:,} requests have no completion time and are left out")
    ax.legend(figure, panels[0])
    return figure


@style.styled
def trace_footprint(over_time: pd.DataFrame) -> Figure:
    """Draw footprint since the beginning and working set of each interval, from `trace_over_time`.

    Raises ValueError for an unsuitable table.
    """
    selection.require(over_time, "trace_over_time")
    title = "Footprint over time"
    largest = float(over_time["footprint_bytes"].max())
    if not largest:
        return nothing(title, "The trace has no reads or writes of data.")
    figure = style.new_figure(title)
    axes = figure.subplots()
    edges = edges_s(over_time)
    at, scale = edges / time_axis(axes, float(edges[-1])), volume(largest, "Blocks read or written")
    width = format_time((over_time["end_s"] - over_time["begin_s"]).iloc[0])
    steps(axes, over_time["footprint_bytes"] / scale.divisor, at, "footprint: all so far",
                 DIRECTIONS["read"], linewidth=2, gid="footprint")  # fmt: skip
    steps(axes, over_time["working_set_bytes"] / scale.divisor, at, f"working set: within {width}",
                 DIRECTIONS["write"], fill=True, alpha=0.75, gid="working set")  # fmt: skip
    ax.scale_y(axes, [largest / scale.divisor], scale)
    block = format_size(int(over_time["block_bytes"].iloc[0]))
    style.note(figure, f"Counted in whole blocks of {block}; discards and write-zeroes do not count")
    ax.legend(figure, axes)
    return figure


@style.styled
def trace_heat(heat: pd.DataFrame, over_time: pd.DataFrame) -> Figure:
    """Draw reads and writes in cells of time and address, from tables `trace_heat` and `trace_over_time`.

    Raises ValueError for unsuitable tables.
    """
    selection.require(over_time, "trace_over_time")
    title = "Access over time and address"
    if heat.empty:
        return nothing(title, "The trace has no reads or writes of data.")
    edges, times = edges_s(over_time), elapsed(float(over_time["end_s"].iloc[-1]), "Time")
    low, high = int(heat["low_bytes"].min()), int(heat["high_bytes"].max())
    band = int(heat["high_bytes"].iloc[0] - heat["low_bytes"].iloc[0])
    address = volume(high, "Address")
    shape = round((high - low) / band), len(over_time)
    row = ((heat["low_bytes"] - low) // band).to_numpy(np.int64)
    place = np.searchsorted(edges, heat["begin_s"].to_numpy(float) + 1e-12, side="right") - 1
    norm = LogNorm(1, max(int(heat[["reads", "writes"]].to_numpy().max()), 2))
    figure = style.new_figure(title, height_in=4.4)
    *panels, beside = figure.subplots(1, 3, width_ratios=(12, 12, 1))
    panels[1].sharey(panels[0])
    panels[1].tick_params(labelleft=False)
    for axes, column in zip(panels, ("reads", "writes"), strict=True):
        mesh = maps.draw(axes, edges / times.divisor, np.linspace(low, high, shape[0] + 1) / address.divisor,
                         maps.cells(shape, row, place, heat[column]), norm, column)  # fmt: skip
        axes.set_title(_many(int(heat[column].sum()), column), fontsize=style.TEXT_PT)
        axes.set_xlabel(times.label)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        ax.write(axes.xaxis, NUMBER)
    panels[0].set_ylabel(address.label)
    ax.write(panels[0].yaxis, NUMBER)
    maps.colour_bar(figure, mesh, beside, "Requests that begin in a cell", format_number)
    width = format_time(float(edges[1] - edges[0]))
    extent = f"from {format_amount(low)} to {format_amount(high)}"
    style.note(figure, f"A cell is {width} long and {format_amount(band)} high; {extent}")
    return figure


def _many(count: int, column: str) -> str:
    return f"{count:,} {column[:-1] if count == 1 else column}"
