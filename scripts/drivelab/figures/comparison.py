"""Performance deltas between drives, cell by cell."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from drivelab.figures import axes as ax
from drivelab.figures import selection, style
from drivelab.figures.quantities import short_name, with_minus

_COLUMNS = ("measurement", "cell_label", "metric", "basis", "comparison", "delta_pct", "certain")
_KEY = ["measurement", "metric", "cell_label"]
_MOST_BARS = 3  # more drives than this in a row are points, not bars
_LOG_FROM_PCT = 400.0
_LEAST_PCT = 0.005  # less is how floats are rounded
_MOST_ROWS = 36
_FIRST = ("score", "duration_s", "figure_of_merit", "iops", "mean_latency_us")
"""Metrics that are shown where there are too many rows for all; the bandwidth of a cell is its I/O rate over again."""
_GREY = "#d0d0d0"


@style.styled
def comparison(deltas: pd.DataFrame) -> Figure:
    """Delta of each drive against the basis for each cell and metric; positive is better for every metric.

    Uncertain deltas are grey and hatched (bars) or hollow (points); a delta that does not exist is said to be missing.
    Raises ValueError for unsuitable tables or more than one basis.
    """
    selection.require(deltas, _COLUMNS, "deltas")
    basis = str(selection.require_one(deltas, "basis", "deltas"))
    if deltas.duplicated([*_KEY, "comparison"]).any():
        raise ValueError("table 'deltas' holds a cell twice for one drive; choose one protocol")
    shown = _most_telling(deltas)
    left_out = deltas["metric"].nunique() - shown["metric"].nunique()
    deltas = shown
    row_of, names = _rows(deltas)
    drives = list(deltas["comparison"].drop_duplicates())
    palette = style.colours(len(drives))
    bars = len(drives) <= _MOST_BARS
    row_in = 0.09 + 0.15 * len(drives) if bars else 0.26
    figure = style.new_figure(f"Delta against {basis}", height_in=max(3.0, 1.7 + row_in * len(names)))
    if left_out:
        style.note(figure, f"{left_out} more metrics are in the tables")
    axes = figure.subplots()
    _delta_axis(axes, basis, deltas["delta_pct"].to_numpy(dtype=float))
    thickness = 0.84 / len(drives) if bars else 0.0
    for number, drive in enumerate(drives):
        for _, delta in deltas[deltas["comparison"] == drive].iterrows():
            y = row_of[tuple(delta[_KEY])] + (number - (len(drives) - 1) / 2) * thickness
            value, certain = float(delta["delta_pct"]), bool(delta["certain"])
            gid = "certain" if certain else "uncertain"
            if not isfinite(value):
                _write(axes, 0, y, "no delta", gid="missing", color=style.MUTED)
            elif bars:
                axes.barh(
                    y,
                    value,
                    thickness * 0.9,
                    color=palette[number] if certain else _GREY,
                    hatch=None if certain else "////",
                    edgecolor=palette[number],
                    linewidth=0.8,
                    gid=gid,
                )
                _write(axes, value, y, _signed(value), gid="value", color=style.INK)
            else:
                axes.plot(
                    value,
                    y,
                    marker=style.MARKERS[number % 10],
                    color=palette[number],
                    linestyle="none",
                    markersize=6.5,
                    markerfacecolor=palette[number] if certain else "white",
                    gid=gid,
                )
    axes.set_yticks(range(len(names)), names)
    for row, tick in enumerate(axes.get_yticklabels()):
        tick.set_fontweight("normal" if row in row_of.values() else "bold")
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=not bars, axis="y")
    ax.legend(figure, axes, handles=_handles(drives, bars, bool((~deltas["certain"].astype(bool)).any())))
    return figure


def _most_telling(deltas: pd.DataFrame) -> pd.DataFrame:
    """All deltas, or those of as many metrics as a page has rows for; one metric at the least."""
    metrics = list(deltas["metric"].drop_duplicates())
    metrics.sort(key=lambda metric: _FIRST.index(metric) if metric in _FIRST else len(_FIRST))
    kept, rows = metrics[:1], 0
    for place, metric in enumerate(metrics):
        rows += deltas[deltas["metric"] == metric]["cell_label"].nunique() + 1
        if rows > _MOST_ROWS:
            break
        kept = metrics[: place + 1]
    return deltas[deltas["metric"].isin(kept)]


def _rows(deltas: pd.DataFrame) -> tuple[dict[tuple[str, ...], int], list[str]]:
    """Row of each cell, and what stands beside each row: a heading for each measurement and metric, then its cells."""
    row_of: dict[tuple[str, ...], int] = {}
    names: list[str] = []
    for (measurement, metric), group in deltas.groupby(["measurement", "metric"], sort=False):
        names.append(f"{measurement}: {short_name(metric)}")
        for cell in group["cell_label"].drop_duplicates():
            row_of[measurement, metric, cell] = len(names)
            names.append(cell)
    return row_of, names


def _delta_axis(axes: Axes, basis: str, values: np.ndarray) -> None:
    """Room for the values and the numbers at their ends, on the sides where there are any."""
    low, high = float(np.nanmin(values, initial=0.0)), float(np.nanmax(values, initial=0.0))
    log = max(high, -low) >= _LOG_FROM_PCT
    if log:
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(low * 6 if low < 0 else -3, high * 6 if high > 0 else 3)
    else:
        room = 0.14 * (high - low) or 1.0
        axes.set_xlim(low - (room if low < 0 else 0.2 * room), high + (room if high > 0 else 0.2 * room))
    axes.axvline(0, color=style.INK, linewidth=1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _signed(value)))
    axes.set_xlabel(f"Delta against {basis} (%){', log scale beyond ±10' if log else ''}, better →")


def _signed(value: float) -> str:
    text = f"{value:+,.0f}" if abs(value) >= 100 else f"{value:+.3g}" if abs(value) >= _LEAST_PCT else "0"
    return "0" if float(text.replace(",", "")) == 0 else with_minus(text)


def _write(axes: Axes, x: float, y: float, text: str, *, gid: str, color: str) -> None:
    axes.annotate(
        text,
        (x, y),
        (3 if x >= 0 else -3, 0),
        textcoords="offset points",
        ha="left" if x >= 0 else "right",
        va="center",
        color=color,
        fontsize=style.SMALL_PT,
        gid=gid,
    )


def _handles(drives: list[str], bars: bool, uncertain: bool) -> list[Artist]:
    """Legend entries: the drives, and what an uncertain delta looks like."""
    handles: list[Artist] = []
    for number, (drive, colour) in enumerate(zip(drives, style.colours(len(drives)), strict=True)):
        marker = style.MARKERS[number % 10]
        handles.append(
            Patch(facecolor=colour, label=drive)
            if bars
            else Line2D([], [], marker=marker, color=colour, linestyle="none", label=drive)
        )
    if uncertain:
        handles.append(
            Patch(facecolor=_GREY, edgecolor=style.MUTED, hatch="////", label="uncertain")
            if bars
            else Line2D(
                [],
                [],
                marker="o",
                markerfacecolor="white",
                color=style.MUTED,
                linestyle="none",
                label="hollow: uncertain",
            )
        )
    return handles
