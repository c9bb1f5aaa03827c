"""I/O rate with telemetry: temperature and its limit, throttling, and load of the host."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="telemetry_strip",
        title="I/O rate and telemetry",
        caption=(
            "I/O rate, temperature of the drive and load of the host's processors. Shaded: the drive "
            "throttled. If the rate falls with either, look for the cause in the environment first."
        ),
        tables=("telemetry", "series", "cells"),
        status="cells",
        when=("telemetry",),
        place=340,
    ),
)

_PLACE = ["recording", "step", "round", "cell"]
_HOST = {
    "cpu_pct": ("all programs", "-"),
    "load_pct": ("other programs", "--"),
    "steal_pct": ("hypervisor", ":"),
}
_THROTTLED = "#f2c6b4"
_WORKLOAD = re.compile(r"\w+ \w+ \d+/\d+")
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
    rates = _rates(series, cells)
    end_s = float((cells["elapsed_s"] + cells["runtime_s"]).max())
    samples = samples[(samples["at_s"] >= -0.02 * end_s) & (samples["at_s"] <= 1.02 * end_s)].sort_values("at_s")
    heat = samples["temperature_c"].notna().any()
    host = [column for column in _HOST if samples[column].notna().any()]
    time = elapsed(end_s)
    figure = style.new_figure("I/O rate and telemetry", height_in=1.4 + 1.75 * (1 + heat + bool(host)))
    panels = figure.subplots(1 + heat + bool(host), 1, sharex=True, squeeze=False)[:, 0]
    _rate_panel(panels[0], rates, time.divisor)
    if heat:
        _heat_panel(panels[1], samples, time.divisor)
    if host:
        _host_panel(panels[-1], samples, host, time.divisor)
    throttled, name = _throttled(cells, samples), "throttled"
    for axes in panels:
        named = len(set(axes.get_legend_handles_labels()[1])) < _MOST_NAMES
        for begin_s, stop_s in throttled:
            axes.axvspan(begin_s / time.divisor, stop_s / time.divisor, color=_THROTTLED, linewidth=0, zorder=0,
                         gid="throttled", label=name if named else "_throttled")  # fmt: skip
        name = "_throttled" if named else name  # one legend entry for all panels
        handles, names = axes.get_legend_handles_labels()
        once = dict(zip(names, handles, strict=True))
        if axes is panels[0] and len(once) > _MOST_NAMES:
            once = {str(line.get_label()): line for line in _key(rates)}
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
    """Return columns at_s, iops, workload, step, round, cell by second, or by cell without seconds.

    The seconds of a soak belong to its first slice.
    """
    seconds = series.groupby([*_PLACE, "time_s"], as_index=False)["iops"].sum()
    known = cells[[*_PLACE, "workload", "elapsed_s"]].drop_duplicates(_PLACE)
    seconds = seconds.merge(known, on=_PLACE, how="inner").assign(at_s=lambda rows: rows["elapsed_s"] + rows["time_s"])
    soaks = cells["kind"] == "soak"
    of_cell = pd.MultiIndex.from_frame(cells[_PLACE]).isin(pd.MultiIndex.from_frame(seconds[_PLACE]))
    whole = cells[~(of_cell | (soaks & cells["step"].isin(seconds["step"])))]
    whole = whole.assign(at_s=whole["elapsed_s"] + whole["runtime_s"] / 2)
    columns = ["at_s", "iops", "workload", "step", "round", "cell"]
    return pd.concat([part[columns] for part in (seconds, whole) if len(part)]).sort_values("at_s", kind="stable")


def _rate_panel(axes: Axes, rates: pd.DataFrame, divisor: float) -> None:
    scale = quantity("iops", float(rates["iops"].max()))
    looks = _looks(rates)
    many = len(rates) > 400
    for load, (marker, shade) in looks.items():
        part = rates[rates["workload"] == load]
        line = len(looks) == 1
        axes.plot(part["at_s"] / divisor, part["iops"] / scale.divisor, linestyle="-" if line else "none",
                  linewidth=0.9, marker="" if line and many else marker, markersize=3,
                  color=style.colours(1)[0] if line else shade, label=load, gid="rate")  # fmt: skip
    values = [float(value) / scale.divisor for value in rates["iops"]]
    ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    axes.set_ylabel(scale.label)


def _looks(rates: pd.DataFrame) -> dict[str, tuple[str, style.Colour]]:
    """Return marker and colour of each workload; of many workloads, by mix and block size."""
    loads = [str(load) for load in rates["workload"].drop_duplicates()]
    sizes, mixes = _parts(loads)
    if len(loads) > _MOST_NAMES and sizes:
        shades = dict(zip(sizes, style.ordered_colours(len(sizes)), strict=True))
        signs = {mix: style.MARKERS[place % len(style.MARKERS)] for place, mix in enumerate(mixes)}
        return {load: (signs[load.rpartition(" ")[2]], shades[load.rpartition(" ")[0]]) for load in loads}
    palette = style.ordered_colours(len(loads))
    return {load: (style.MARKERS[place % len(style.MARKERS)], palette[place]) for place, load in enumerate(loads)}


def _key(rates: pd.DataFrame) -> list[Line2D]:
    """Return legend entries for the colours and markers of `_looks`, if the workloads have two parts."""
    looks = _looks(rates)
    sizes, mixes = _parts(list(looks))
    shades = {load.rpartition(" ")[0]: shade for load, (_, shade) in looks.items()}
    signs = {load.rpartition(" ")[2]: marker for load, (marker, _) in looks.items()}
    return [
        *(Line2D([], [], linestyle="none", marker="_", markersize=8, markeredgewidth=3, color=shades[text], label=text)
          for text in sizes),
        *(Line2D([], [], linestyle="none", marker=signs[text], markersize=4, color=style.INK, label=text)
          for text in mixes),
    ]  # fmt: skip


def _parts(loads: list[str]) -> tuple[list[str], list[str]]:
    """Return block sizes with patterns, and mixes, of workloads like `RND 4KiB 0/100`; else empty lists."""
    if not all(_WORKLOAD.fullmatch(load) for load in loads):
        return [], []
    sizes, mixes = (list(dict.fromkeys(load.rpartition(" ")[part] for load in loads)) for part in (0, 2))
    return sizes, mixes


def _heat_panel(axes: Axes, samples: pd.DataFrame, divisor: float) -> None:
    known = samples[samples["temperature_c"].notna()]
    axes.plot(known["at_s"] / divisor, known["temperature_c"], color="#d55e00", linewidth=1.4, label="drive",
              gid="temperature")  # fmt: skip
    limit = samples[samples["temperature_limit_c"].notna()]
    if len(limit):
        axes.plot(limit["at_s"] / divisor, limit["temperature_limit_c"], color=style.INK, linestyle="--", linewidth=1,
                  label="its limit", gid="limit")  # fmt: skip
    axes.margins(y=0.15)
    axes.set_ylabel("Temperature\n(°C)")


def _host_panel(axes: Axes, samples: pd.DataFrame, host: list[str], divisor: float) -> None:
    for column, colour in zip(host, style.colours(len(host)), strict=True):
        name, dash = _HOST[column]
        known = samples[samples[column].notna()]
        axes.plot(known["at_s"] / divisor, known[column], color=colour, linestyle=dash, linewidth=1.2, label=name,
                  gid=column)  # fmt: skip
    axes.set_ylim(0, max(5.0, float(np.nanmax(samples[host].to_numpy(dtype=float))) * 1.1))
    axes.set_ylabel("Processor time\n(% of all)")


def _throttled(cells: pd.DataFrame, samples: pd.DataFrame) -> list[tuple[float, float]]:
    """Return throttled spans in seconds: throttled cells, and where counters of throttled time rise."""
    spans = [(float(cell.elapsed_s), float(cell.elapsed_s + cell.runtime_s)) for cell in cells.itertuples()
             if pd.notna(cell.throttled) and bool(cell.throttled)]  # fmt: skip
    for column in ("thermal_1_s", "thermal_2_s"):
        known = samples[samples[column].notna()]
        at_s, rises = known["at_s"].to_numpy(dtype=float), np.diff(known[column].to_numpy(dtype=float)) > 0
        spans += [(float(at_s[place]), float(at_s[place + 1])) for place in np.flatnonzero(rises)]
    return _joined(sorted(spans))


def _joined(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    joined: list[tuple[float, float]] = []
    for begin, end in spans:
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
