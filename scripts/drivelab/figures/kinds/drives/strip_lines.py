"""Shared parts of the strip charts: lines over time, separate panels for reads and writes."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.base.words import say

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
