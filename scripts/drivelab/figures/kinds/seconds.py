"""Values second by second: of several drives, and with the telemetry of one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.base.words import say
from drivelab.figures.families.lines import Lines, Panel, X
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "strip_chart", "Strip chart",
        "Each second of the soaks of all drives, aligned at their starts; the drives were measured one after "
        "another. Bold lines are rolling means.",
        tables=("series", "cells"), when=("drives_strip",), place=420,
    ),
    FigureKind(
        "head_to_head", "Head to head",
        "I/O rate of all drives in each second, measured at the same time and counted from their common start. If "
        "one falls while another rises, they share a resource: the host, a bus, a power supply.",
        tables=("series", "cells"), when=("head_to_head",), place=430,
    ),
    FigureKind(
        "telemetry_strip", "I/O rate and telemetry",
        "I/O rate, temperature of the drive and load of the host's processors. Shaded: the drive throttled. If the "
        "rate falls with either, look for the cause in the environment first.",
        tables=("telemetry", "series", "cells"), when=("telemetry",), place=340, status="cells",
    ),
)  # fmt: skip

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
                                      alpha=0.25, linewidth=0.7, zorder=1.9, label=str(name),
                                      gid="second")  # fmt: skip
            say(pale, "every second")
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
    at_s = (rows["started"] - rows["started"].min()).dt.total_seconds() + rows["time_s"]
    own_clocks = bool((rows["clock"] == "virtual").any())
    began = (at_s - rows["time_s"]).groupby(rows["recording"] if own_clocks else rows["run"]).transform("min")
    rows = rows.assign(at_s=at_s - began)
    figure = draw(rows, "Head to head: I/O rate second by second", "iops", "the common start")
    if own_clocks:
        style.note(figure, "virtual clock: each drive has its own clock; the starts are aligned")
    return figure


_HEAT: Mapping[str, tuple[str, dict[str, Any]]] = {
    "temperature_c": ("drive", {"color": "#d55e00"}),
    "temperature_limit_c": ("its limit", {"color": style.INK, "linestyle": "--", "linewidth": 1}),
}
_HOST: Mapping[str, tuple[str, dict[str, Any]]] = {
    column: (name, {"color": colour, "linestyle": dash, "linewidth": 1.2})
    for (column, name, dash), colour in zip(
        (("cpu_pct", "all programs", "-"), ("load_pct", "other programs", "--"), ("steal_pct", "hypervisor", ":")),
        style.colours(3), strict=True,
    )
}  # fmt: skip
"""Name and look of the samples, by column."""
_THROTTLED = "#f2c6b4"
_WORKLOAD = re.compile(r"(\w+ \w+) (\d+/\d+)")
_MOST_NAMES = 7
"""Maximum number of legend entries in a column, so that it is not higher than its panel."""


@style.styled
def telemetry_strip(telemetry: pd.DataFrame, series: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw I/O rate, drive temperature and load of the host's processors of one recording over time.

    Spans of throttling are shaded. A quantity without samples has no panel; a note says if there are no samples at all.
    Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    began = (cells["started"] - pd.to_timedelta(cells["elapsed_s"], unit="s")).min()
    samples = telemetry.assign(at_s=(telemetry["time"] - began).dt.total_seconds() if len(telemetry) else [])
    end_s = float((cells["elapsed_s"] + cells["runtime_s"]).max())
    samples = samples[(samples["at_s"] >= -0.02 * end_s) & (samples["at_s"] <= 1.02 * end_s)].sort_values("at_s")
    heat = samples["temperature_c"].notna().any()
    host = [column for column in _HOST if samples[column].notna().any()]
    time = elapsed(end_s)
    figure = style.new_figure("I/O rate and telemetry", height_in=1.4 + 1.75 * (1 + heat + bool(host)))
    panels = figure.subplots(1 + heat + bool(host), 1, sharex=True, squeeze=False)[:, 0]
    keys: dict[Axes, list[Artist]] = {panels[0]: _draw_rates(panels[0], _rates(series, cells), time.divisor)}
    if heat:
        _draw_samples(panels[1], samples, _HEAT, time.divisor)
        panels[1].margins(y=0.15)
        panels[1].set_ylabel("Temperature\n(°C)")
    if host:
        _draw_samples(panels[-1], samples, _HOST, time.divisor)
        panels[-1].set_ylim(0, max(5.0, float(np.nanmax(samples[host].to_numpy(dtype=float))) * 1.1))
        panels[-1].set_ylabel("Processor time\n(% of all)")
    throttled, named = _throttled(cells, samples), False
    for axes in panels:
        once = {str(entry.get_label()): entry for entry in keys.get(axes) or axes.get_legend_handles_labels()[0]}
        for begin_s, stop_s in throttled:
            span = axes.axvspan(begin_s / time.divisor, stop_s / time.divisor, color=_THROTTLED, linewidth=0, zorder=0,
                                gid="throttled", label="throttled")  # fmt: skip
            if not named and len(once) < _MOST_NAMES:  # one legend entry for all panels
                once["throttled"], named = span, True
        if 0 < len(once) <= 2 * _MOST_NAMES + 2:
            axes.legend(once.values(), once.keys(), loc="upper left", bbox_to_anchor=(1.0, 1.05), borderaxespad=0.3,
                        ncols=1 + (len(once) > _MOST_NAMES), columnspacing=0.8, handletextpad=0.4)  # fmt: skip
    if not heat and not host:
        style.note(figure, "neither temperature nor host load was sampled")
    panels[-1].set_xlim(-0.01 * end_s / time.divisor, 1.01 * end_s / time.divisor)
    words.time(panels[-1].xaxis, time.divisor)
    panels[-1].set_xlabel(f"Time since the measurement began ({time.unit})")
    return figure


def _rates(series: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Return columns at_s, iops, workload by second, or by cell without seconds.

    The seconds of a soak belong to its first slice.
    """
    seconds = series.groupby([*_PLACE, "time_s"], as_index=False)["iops"].sum()
    known = cells[[*_PLACE, "workload", "elapsed_s"]].drop_duplicates(_PLACE)
    seconds = seconds.merge(known, on=_PLACE, how="inner").assign(at_s=lambda rows: rows["elapsed_s"] + rows["time_s"])
    soaks = cells["kind"] == "soak"
    of_cell = pd.MultiIndex.from_frame(cells[_PLACE]).isin(pd.MultiIndex.from_frame(seconds[_PLACE]))
    whole = cells[~(of_cell | (soaks & cells["step"].isin(seconds["step"])))]
    whole = whole.assign(at_s=whole["elapsed_s"] + whole["runtime_s"] / 2)
    columns = ["at_s", "iops", "workload"]
    return pd.concat([part[columns] for part in (seconds, whole) if len(part)]).sort_values("at_s", kind="stable")


def _draw_rates(axes: Axes, rates: pd.DataFrame, divisor: float) -> list[Artist]:
    """Draw the I/O rate, a look for each workload; return the legend entries if these are not the workloads."""
    scale = quantity("iops", float(rates["iops"].max()))
    loads = [str(load) for load in rates["workload"].drop_duplicates()]
    parts = {load: match.groups() for load in loads if (match := _WORKLOAD.fullmatch(load))}
    by_part = len(loads) > _MOST_NAMES and len(parts) == len(loads)
    sizes, mixes = (
        ([*dict.fromkeys(names)] for names in zip(*parts.values(), strict=True)) if by_part else (loads, loads)
    )
    shades = dict(zip(sizes, style.ordered_colours(len(sizes)), strict=True))
    signs = {mix: style.MARKERS[place % len(style.MARKERS)] for place, mix in enumerate(mixes)}
    for load in loads:
        size, mix = parts[load] if by_part else (load, load)
        part = rates[rates["workload"] == load]
        look = {"marker": signs[mix], "color": shades[size], "linestyle": "none"}
        if len(loads) == 1:
            look |= {"color": style.colours(1)[0], "linestyle": "-", "marker": "" if len(rates) > 400 else "o"}
        axes.plot(part["at_s"] / divisor, part["iops"] / scale.divisor, linewidth=0.9, markersize=3, label=load,
                  gid="rate", **look)  # fmt: skip
    values = [float(value) / scale.divisor for value in rates["iops"]]
    ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    axes.set_ylabel(scale.label)
    if not by_part:
        return []
    return [
        *(Line2D([], [], linestyle="none", marker="_", markersize=8, markeredgewidth=3, color=shades[size], label=size)
          for size in sizes),
        *(Line2D([], [], linestyle="none", marker=signs[mix], markersize=4, color=style.INK, label=mix)
          for mix in mixes),
    ]  # fmt: skip


def _draw_samples(axes: Axes, samples: pd.DataFrame, looks: Mapping[str, Any], divisor: float) -> None:
    for column, (name, look) in looks.items():
        known = samples[samples[column].notna()]
        if len(known):
            axes.plot(known["at_s"] / divisor, known[column], label=name, gid=column, **look)


def _throttled(cells: pd.DataFrame, samples: pd.DataFrame) -> list[tuple[float, float]]:
    """Return throttled spans in seconds: throttled cells, and where counters of throttled time rise."""
    spans = [(float(cell.elapsed_s), float(cell.elapsed_s + cell.runtime_s)) for cell in cells.itertuples()
             if pd.notna(cell.throttled) and bool(cell.throttled)]  # fmt: skip
    for column in ("thermal_1_s", "thermal_2_s"):
        known = samples[samples[column].notna()]
        at_s, rises = known["at_s"].to_numpy(dtype=float), np.diff(known[column].to_numpy(dtype=float)) > 0
        spans += [(float(at_s[place]), float(at_s[place + 1])) for place in np.flatnonzero(rises)]
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
