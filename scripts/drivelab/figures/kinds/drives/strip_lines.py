"""Values of several drives second by second: soaks from their starts, and drives measured at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.base.words import say
from drivelab.figures.families.lines import Lines, Panel, X
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
    scale, time = quantity(metric, float(rows[metric].max())), elapsed(float(rows["at_s"].max()))
    line = rows["drive"] + ", run " + rows["run"].astype(str) if rows["run"].nunique() > 1 else rows["drive"]
    rows = rows.assign(line=line, at=rows["at_s"] / time.divisor, panel=rows["direction"].map(DIRECTIONS))
    rows = rows.sort_values(["direction", "at_s"], kind="stable")
    lines = [_rolling(part, metric) for _, part in rows.groupby(["direction", "line"], sort=False)]
    table = pd.concat(lines)
    means = table["words"].loc[table["words"] != ""]

    def seconds(panel: Panel) -> Sequence[Artist]:
        for name, part in panel.points[panel.points["words"] != ""].groupby("line", sort=False):
            (pale,) = panel.axes.plot(part["at"], part["second"] / scale.divisor, color=panel.looks[str(name)].colour,
                                      alpha=0.25, linewidth=0.7, zorder=1.9, label="_every second",
                                      gid="second")  # fmt: skip
            say(pale, "every second", name=str(name))
        return ()

    one = rows["panel"].nunique() == 1
    name = f"{scale.name}, {rows['panel'].iloc[0]}" if one else scale.name
    return Lines(
        title, (metric,), X("at", f"Time since {since} ({time.unit})", "linear", limits=(0, rows["at"].max() * 1.01)),
        columns=1, same_x=True, linear=(metric,), quantities={metric: replace(scale, name=name)}, marks=seconds,
        note=f"pale: every second; bold: {means.max()}" if len(means) else "",
    ).draw(table.drop(columns="panel") if one else table)  # fmt: skip


def _rolling(line: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return a line with its values as `second`; of a long one `metric` is the rolling mean, and `words` say so."""
    line = line.assign(second=line[metric], words="")
    if len(line) <= _LONG:
        return line
    seconds = max(2, len(line) // _WINDOWS)
    window_s = seconds * float(line["at_s"].diff().median())
    mean = line[metric].rolling(seconds, center=True, min_periods=1).mean()
    return line.assign(**{metric: mean}, words=f"rolling mean over {window_s:.0f} s")


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
