"""Values of several drives second by second: soaks from their starts, and drives measured at the same time."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.base.words import say
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="strip_chart",
        title="Strip chart",
        caption=(
            "Each second of the soaks of all drives, aligned at their starts; the drives were measured one "
            "after another. Bold lines are rolling means."
        ),
        tables=("series", "cells"),
        when=("drives_strip",),
        place=420,
    ),
    FigureKind(
        name="head_to_head",
        title="Head to head",
        caption=(
            "I/O rate of all drives in each second, measured at the same time and counted from their common "
            "start. If one falls while another rises, they share a resource: the host, a bus, a power supply."
        ),
        tables=("series", "cells"),
        when=("head_to_head",),
        place=430,
    ),
)
DIRECTIONS = {"read": "reads", "write": "writes"}
_LONG = 150
"""Longer lines get their rolling mean on top."""
_WINDOWS = 60
"""The window of the rolling mean is the length of the line divided by this (our choice)."""


def draw(rows: pd.DataFrame, title: str, metric: str, since: str) -> Figure:
    """Draw `rows` (columns drive, run, direction, at_s and `metric`); `since` says when at_s is 0.

    Raises ValueError for an unknown metric.
    """
    scale = quantity(metric, float(rows[metric].max()))
    directions = [direction for direction in DIRECTIONS if (rows["direction"] == direction).any()]
    figure = style.new_figure(title, height_in=style.HEIGHT_IN if len(directions) == 1 else 5.8)
    panels = figure.subplots(len(directions), 1, sharex=True, squeeze=False)[:, 0]
    looks, several_runs = overlay.looks(rows["drive"]), rows["run"].nunique() > 1
    time = elapsed(float(rows["at_s"].max()))
    longest_window_s = 0.0
    for axes, direction in zip(panels, directions, strict=True):
        part = rows[rows["direction"] == direction]
        for (drive, run), line in part.groupby(["drive", "run"], sort=False):
            look = looks[str(drive)]
            how = {"color": look.colour, "linestyle": style.DASHES[(int(run) - 1) % 4], "marker": look.marker,
                   "label": f"{drive}, run {run}" if several_runs else str(drive)}  # fmt: skip
            line = line.sort_values("at_s", kind="stable")
            window_s = _line(axes, line["at_s"], line[metric] / scale.divisor, time.divisor, how)
            longest_window_s = max(longest_window_s, window_s)
        ax.scale_y(axes, [float(value) for value in part[metric] / scale.divisor], scale)
        axes.set_ylabel(f"{scale.name}, {DIRECTIONS[direction]}\n({scale.unit})")
    panels[-1].set_xlim(0, float(rows["at_s"].max()) / time.divisor * 1.01)
    panels[-1].set_xlabel(f"Time since {since} ({time.unit})")
    if longest_window_s:
        style.note(figure, f"pale: every second; bold: rolling mean over {longest_window_s:.0f} s")
    overlay.note_coinciding(figure, rows, ["run", "direction", "at_s"], [metric])
    ax.legend(figure, panels[0])
    return figure


def _line(axes: Axes, at_s: pd.Series, values: pd.Series, divisor: float, how: dict[str, Any]) -> float:
    """Draw one line; return the window of its rolling mean in seconds, or 0 without one."""
    every: dict[str, Any] = {"markersize": 4, "markevery": max(1, len(at_s) // 20), "gid": "line"}
    if len(at_s) <= _LONG:
        axes.plot(at_s / divisor, values, linewidth=1.2, **every, **how)
        return 0.0
    seconds = max(2, len(at_s) // _WINDOWS)
    (every_second,) = axes.plot(
        at_s / divisor, values, color=how["color"], alpha=0.25, linewidth=0.7, label="_every second", gid="second"
    )
    say(every_second, "every second", name=how["label"])
    rolling = values.rolling(seconds, center=True, min_periods=1).mean()
    (line,) = axes.plot(at_s / divisor, rolling, linewidth=1.4, **every, **how)
    window_s = float(seconds) * float(at_s.diff().median())
    say(line, f"rolling mean over {window_s:.0f} s")
    return window_s


_PLACE = ["recording", "step", "round", "cell"]


@style.styled
def strip_chart(series: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the I/O rate per second of the soaks, a line per drive and run, panels by direction.

    Soaks of different workloads show bandwidth. Time begins with the first second of the
    first soak; soaks in phases are left out. Long lines are pale, with their rolling mean on top. Raises ValueError for
    unsuitable tables.
    """
    selection.require(cells, "cells")
    selection.require_one(series, "measurement", "series")
    soaks = series[(series["kind"] == "soak") & series["phase"].isna()]
    rows = soaks.merge(cells[[*_PLACE, "elapsed_s"]].drop_duplicates(_PLACE), on=_PLACE, how="inner")
    if rows.empty:
        raise ValueError("table 'series' has no seconds of the soaks in table 'cells'")
    began = rows.groupby("recording")["elapsed_s"].transform("min")
    rows = rows.assign(at_s=rows["elapsed_s"] - began + rows["time_s"])
    workloads = list(rows["workload"].drop_duplicates())
    title = f"Strip chart, {workloads[0]}" if len(workloads) == 1 else "Strip chart"
    metric = "iops" if len(workloads) == 1 else "bandwidth_mib_s"
    figure = draw(rows, title, metric, "the first soak began")
    if len(workloads) > 1:
        style.note(figure, f"one after another: {', '.join(workloads)}")
    return figure


@style.styled
def head_to_head(series: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the I/O rate per second on one clock, a line per drive and run, separate panels by direction.

    The clock of a run begins with the first drive. Each virtual drive has its own virtual clock; those are aligned at
    their starts, and a note says so. Raises ValueError for unsuitable tables.
    """
    selection.require(cells, "cells")
    selection.require_one(series, "measurement", "series")
    places = cells[[*_PLACE, "started"]].drop_duplicates(_PLACE)
    rows = series.merge(places, on=_PLACE, how="inner")
    if rows.empty:
        raise ValueError("table 'series' has no seconds of the cells in table 'cells'")
    at_s = rows["started"].astype("int64") / _ticks_per_s(rows["started"]) + rows["time_s"]
    own_clocks = bool((rows["clock"] == "virtual").any())
    began = (at_s - rows["time_s"]).groupby(rows["recording"] if own_clocks else rows["run"]).transform("min")
    rows = rows.assign(at_s=at_s - began)
    figure = draw(rows, "Head to head: I/O rate second by second", "iops", "the common start")
    if own_clocks:
        style.note(figure, "virtual clock: each drive has its own clock; the starts are aligned")
    return figure


def _ticks_per_s(times: pd.Series) -> float:
    """Return the number of ticks per second of a column of time stamps."""
    return {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[times.dt.unit]
