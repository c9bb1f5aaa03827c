"""Values second by second: of several drives, and with the telemetry of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import Quantity, quantity
from drivelab.figures.base.words import say
from drivelab.figures.families.lines import Lines, Panel, X, in_order
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
        tables=("series", "cells"), when=("head_to_head",), place=430, draw="strip_chart", options={"together": True},
    ),
    FigureKind(
        "telemetry_strip", "I/O rate and telemetry",
        "I/O rate, temperature of the drive and load of the host's processors. Shaded: the drive throttled. If the "
        "rate falls with either, look for the cause in the environment first.",
        tables=("telemetry", "series", "cells"), when=("telemetry",), place=340, status="cells",
    ),
)  # fmt: skip

_DIRECTIONS = {"read": "reads", "write": "writes"}
_LONG = 150
"""Longer lines get their rolling mean on top."""
_WINDOWS = 60
"""The window of the rolling mean is the length of the line divided by this (our choice)."""
_PLACE = ["recording", "step", "round", "cell"]


def _draw(rows: pd.DataFrame, title: str, metric: str, since: str, note: str = "") -> Figure:
    """Draw `rows` (columns drive, run, direction, at_s and `metric`); `since` says when at_s is 0."""
    scale = quantity(metric, float(rows[metric].max()))
    line = rows["drive"] + ", run " + rows["run"].astype(str) if rows["run"].nunique() > 1 else rows["drive"]
    rows = rows.assign(line=line, panel=rows["direction"].map(_DIRECTIONS))
    rows = rows.sort_values(["direction", "at_s"], kind="stable")
    table = pd.concat(_rolling(part, metric) for _, part in rows.groupby(["direction", "line"], sort=False))
    means = table["words"].loc[table["words"] != ""]

    def seconds(panel: Panel) -> Sequence[Artist]:
        for name, part in panel.points[panel.points["words"] != ""].groupby("line", sort=False):
            (pale,) = panel.axes.plot(panel.at(part), part["second"] / scale.divisor, alpha=0.25, linewidth=0.7,
                                      color=panel.looks[str(name)].colour, zorder=1.9, label=str(name),
                                      gid="second")  # fmt: skip
            say(pale, "every second")
        return ()

    one = rows["panel"].nunique() == 1
    name = f"{scale.name}, {rows['panel'].iloc[0]}" if one else scale.name
    pale = f"pale: every second; bold: {means.max()}" if len(means) else ""
    return Lines(
        title, (metric,), X.time("at_s", float(rows["at_s"].max()), f"Time since {since}"), columns=1, same_x=True,
        linear=(metric,), quantities={metric: replace(scale, name=name)}, marks=seconds,
        note="; ".join(filter(None, (pale, note))),
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


def strip_chart(series: pd.DataFrame, cells: pd.DataFrame, *, together: bool = False) -> Figure:
    """Draw the I/O rate per second of the soaks, a line per drive and run, panels by direction.

    Time begins with the first second of each recording's first soak, and soaks in phases are left out; of drives that
    were measured `together`, with the first drive of a run, and all cells are shown. Each virtual drive has its own
    clock, so those are aligned at their starts. Different workloads show bandwidth. Long lines are pale, with their
    rolling mean on top.
    """
    selection.require(cells, "cells")
    selection.require_one(series, "measurement", "series")
    shown = series if together else overlay.soaks(series)
    clock = "started" if together else "elapsed_s"
    rows = shown.merge(cells[[*_PLACE, clock]].drop_duplicates(_PLACE), on=_PLACE, how="inner")
    if rows.empty:
        raise ValueError("table 'series' has no seconds of the soaks in table 'cells'")
    own_clocks = bool((rows["clock"] == "virtual").any())
    began_s = (rows["started"] - rows["started"].min()).dt.total_seconds() if together else rows["elapsed_s"]
    start = rows["run"] if together and not own_clocks else rows["recording"]
    rows = rows.assign(at_s=began_s - began_s.groupby(start).transform("min") + rows["time_s"])
    if together:
        note = "virtual clock: each drive has its own clock; the starts are aligned" if own_clocks else ""
        return _draw(rows, "Head to head: I/O rate second by second", "iops", "the common start", note)
    workloads = list(rows["workload"].drop_duplicates())
    if len(workloads) == 1:
        return _draw(rows, f"Strip chart, {workloads[0]}", "iops", "the first soak began")
    note = f"one after another: {', '.join(workloads)}"
    return _draw(rows, "Strip chart", "bandwidth_mib_s", "the first soak began", note)


_SAMPLES = {
    "temperature_c": ("temperature", "drive temperature", Look(to_rgb("#d55e00"), "", "-")),
    "temperature_limit_c": ("temperature", "its limit", Look(to_rgb(style.INK), "", "--")),
    "cpu_pct": ("processors", "all programs", Look(to_rgb(style.COLOURBLIND[0]), "", "-")),
    "load_pct": ("processors", "other programs", Look(to_rgb(style.COLOURBLIND[1]), "", "--")),
    "steal_pct": ("processors", "hypervisor", Look(to_rgb(style.COLOURBLIND[2]), "", ":")),
}
"""Panel, name and look of the samples, by column."""
_QUANTITIES = {"temperature": Quantity("Temperature", "°C"), "processors": Quantity("Processor time", "% of all")}
_THROTTLED = "#f2c6b4"
_MOST_LOADS = 12
"""With more workloads, those that differ in the mix alone have one look."""
_MIX = r" \d+/\d+"


def telemetry_strip(telemetry: pd.DataFrame, series: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw I/O rate, drive temperature and load of the host's processors of one recording over time.

    Spans of throttling are shaded. A quantity without samples has no panel; a note says if there are no samples at all.
    """
    selection.require_one(cells, "recording", "cells")
    began = (cells["started"] - pd.to_timedelta(cells["elapsed_s"], unit="s")).min()
    samples = telemetry.assign(at_s=(telemetry["time"] - began).dt.total_seconds() if len(telemetry) else [])
    end_s = float((cells["elapsed_s"] + cells["runtime_s"]).max())
    samples = samples[samples["at_s"].between(-0.02 * end_s, 1.02 * end_s)].sort_values("at_s")
    known = {column: sample for column, sample in _SAMPLES.items() if samples[column].notna().any()}
    if "temperature_c" not in known:
        known.pop("temperature_limit_c", None)
    rates = _rates(series, cells)
    rates = rates.assign(line=rates["workload"], words=rates["workload"])
    if rates["line"].nunique() > _MOST_LOADS:
        rates["line"] = rates["line"].str.replace(_MIX, "", regex=True)
    parts = [samples[["at_s"]].assign(**{panel: samples[column]}, line=name).dropna()
             for column, (panel, name, _) in known.items()]  # fmt: skip
    table = pd.concat([rates, *parts]).fillna({"words": ""})
    throttled = _throttled(cells, samples)

    def looks(_: pd.DataFrame) -> dict[str, Look]:
        of_loads = in_order(table[table["iops"].notna()])
        dash = "-" if len(of_loads) == 1 else "none"
        loads = {name: replace(look, dash=dash, size=3.0) for name, look in of_loads.items()}
        return loads | {name: look for _, name, look in known.values()}

    def spans(panel: Panel) -> Sequence[Artist]:
        return [panel.axes.axvspan(begin_s / panel.x.divisor, stop_s / panel.x.divisor, color=_THROTTLED, linewidth=0,
                                   zorder=0, gid="throttled", label="throttled")
                for begin_s, stop_s in throttled]  # fmt: skip

    return Lines(
        "I/O rate and telemetry", ("iops", *_QUANTITIES), X.time("at_s", end_s, "Time since the measurement began"),
        looks=looks, stacked=True, row_in=1.75, linear=tuple(_QUANTITIES), quantities=_QUANTITIES, marks=spans,
        note="" if known else "neither temperature nor host load was sampled",
    ).draw(table.reindex(columns=[*table.columns, *(_QUANTITIES.keys() - set(table.columns))]))  # fmt: skip


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


def _throttled(cells: pd.DataFrame, samples: pd.DataFrame) -> list[tuple[float, float]]:
    """Return throttled spans in seconds: throttled cells, and where counters of throttled time rise."""
    hot = cells[cells["throttled"].eq(True)]
    spans = [pd.DataFrame({"begin": hot["elapsed_s"], "end": hot["elapsed_s"] + hot["runtime_s"]})]
    for column in ("thermal_1_s", "thermal_2_s"):
        known = samples[samples[column].notna()]
        rises = known[column].astype(float).diff() > 0
        spans.append(pd.DataFrame({"begin": known["at_s"].shift()[rises], "end": known["at_s"][rises]}))
    table = pd.concat(spans).astype(float).sort_values(["begin", "end"])
    apart = (table["begin"] > table["end"].cummax().shift()).cumsum()
    joined = table.groupby(apart).agg({"begin": "min", "end": "max"})
    return list(joined.itertuples(index=False, name=None))
