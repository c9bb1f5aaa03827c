"""Head to head: the I/O rate of every second of drives that were measured at the same time."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures import axes as ax
from drivelab.figures import selection, style
from drivelab.figures.quantities import elapsed, quantity

_PLACE = ["recording", "step", "round", "cell"]
_SERIES = (*_PLACE, "drive", "run", "measurement", "clock", "time_s", "direction")
_CELLS = (*_PLACE, "drive", "started")
_DIRECTIONS = {"read": "reads", "write": "writes"}


@style.styled
def head_to_head(series: pd.DataFrame, cells: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """`metric` second by second on one clock, a line per drive and run; reads and writes in panels of their own.

    The clock of a run begins with the drive that began first. On the virtual clock, of which every drive has its own,
    they are laid on each other from their starts, and that is said. Raises ValueError for unsuitable tables.
    """
    selection.require(series, (*_SERIES, metric), "series")
    selection.require(cells, _CELLS, "cells")
    selection.require_one(series, "measurement", "series")
    places = cells[[*_PLACE, "started"]].drop_duplicates(_PLACE)
    rows = series.merge(places, on=_PLACE, how="inner")
    if rows.empty:
        raise ValueError("table 'series' has no seconds of the cells in table 'cells'")
    at_s = rows["started"].astype("int64") / _ticks_per_s(rows["started"]) + rows["time_s"]
    own_clocks = bool((rows["clock"] == "virtual").any())
    began = (at_s - rows["time_s"]).groupby(rows["recording"] if own_clocks else rows["run"]).transform("min")
    rows = rows.assign(at_s=at_s - began)
    time, scale = elapsed(float(rows["at_s"].max())), quantity(metric, float(rows[metric].max()))
    drives = list(rows["drive"].drop_duplicates())
    colours = dict(zip(drives, style.colours(len(drives)), strict=True))
    directions = [one for one in _DIRECTIONS if (rows["direction"] == one).any()]
    several_runs = rows["run"].nunique() > 1
    figure = style.new_figure(f"Head to head: {scale.name} second by second",
                              height_in=style.HEIGHT_IN if len(directions) == 1 else 5.8)  # fmt: skip
    panels = figure.subplots(len(directions), 1, sharex=True, squeeze=False)[:, 0]
    for axes, direction in zip(panels, directions, strict=True):
        part = rows[rows["direction"] == direction]
        for (drive, run), line in part.groupby(["drive", "run"], sort=False):
            line = line.sort_values("at_s")
            name = f"{drive}, run {run}" if several_runs else str(drive)
            axes.plot(line["at_s"] / time.divisor, line[metric] / scale.divisor, color=colours[drive], linewidth=1.2,
                      linestyle=style.DASHES[(int(run) - 1) % 4], marker=style.MARKERS[drives.index(drive) % 10],
                      markersize=4, markevery=max(1, len(line) // 20), label=name, gid="line")  # fmt: skip
        ax.scale_y(axes, [float(one) for one in part[metric] / scale.divisor], scale)
        axes.set_ylabel(f"{scale.name}, {_DIRECTIONS[direction]}\n({scale.unit})")
    panels[-1].set_xlim(0, float(rows["at_s"].max()) / time.divisor * 1.01)
    panels[-1].set_xlabel(f"Time since the common start ({time.unit})")
    if own_clocks:
        style.note(figure, "virtual clock: each drive has a clock of its own, the starts are laid on each other")
    ax.legend(figure, panels[0])
    return figure


def _ticks_per_s(times: pd.Series) -> float:
    """Resolution of a column of time stamps."""
    return {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[times.dt.unit]
