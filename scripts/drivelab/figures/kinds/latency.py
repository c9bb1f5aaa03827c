"""Distributions of latency: curves with nines, the nines themselves, and the tail."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values import latency_values as quantiles
from drivelab.analysis.values.latency_values import NINES, percentiles_us, tail_contribution
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import LATENCY, PLAIN, format_latency
from drivelab.figures.families.curves import Curve, Curves, exceedance
from drivelab.figures.families.rows import Across, Rows, dot
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        "latency_distribution", "Latency distribution",
        "Share of the last soak's I/Os that were faster than a latency, both axes logarithmic: each step up is one "
        "more nine. Latency is from submission to completion; the bins of all slices are merged.",
        tables=("latency_bins",), when=("histogram", "nines"), place=180, rows="last_soak",
    ),
    FigureKind(
        "exceedance_of_drives", "Latency distribution of all drives",
        "Share of each drive's I/Os that were faster than a latency, up to 99.9999 %. The legend has the highest "
        "percentile above which every drive has at least ten I/Os.",
        tables=("latency_bins",), when=("drives_latency",), place=323,
    ),
    FigureKind(
        "latency_by_turn", "Latency distribution, turn by turn",
        "Share of I/Os that were as fast, a line for each turn of the repeated step, such as the points MAX, MID and "
        "MIN of a demand sweep. From merged histograms of the whole last soak of each turn. Darker lines are at 99, "
        "99.9, 99.99 and 99.999 %.",
        tables=("latency_bins", "cells"), when=("turns",), place=220, rows="turns",
    ),
    FigureKind(
        "nines", "Latency at the nines",
        "Latency that a share of the I/Os did not exceed, from 50 to 99.9999 %, from merged histograms. Hollow dots "
        "have fewer than ten I/Os above them and are unreliable.",
        tables=("latency_bins",), when=("nines",), place=200, rows="last_soak",
    ),
    FigureKind(
        "nines_of_drives", "The nines side by side",
        "Latency that 50 to 99.9999 % of each drive's I/Os did not exceed, from merged histograms. Hollow dots have "
        "fewer than ten I/Os above them and are unreliable.",
        tables=("latency_bins",), when=("drives_latency",), place=321,
    ),
    FigureKind(
        "tail", "Tail contribution",
        "Share of the total latency that is due to the slowest I/Os. On the dashed line all I/Os take the same time; "
        "the further a curve is above it, the more a few slow I/Os cost.",
        tables=("latency_bins",), when=("sliced", "drives_latency"), place=330,
    ),
)  # fmt: skip

_TAIL = (0.001, "99.9 %")


def _share(bins: pd.DataFrame) -> pd.Series:
    return exceedance(bins["latency_ns"] / 1e3, bins["count"])


def _curve(name: str, bins: pd.DataFrame, place: int, colour: style.Colour) -> Curve:
    """Return a curve; its name has the latency of the tail if the number of I/Os can determine it."""
    share = _share(bins)
    if share.min() <= _TAIL[0]:
        name = f"{name}: {_TAIL[1]} in {format_latency(float(share.index[share > _TAIL[0]][-1]))}"
    return Curve(name, share, colour, style.DASHES[place % 4])


@style.styled
def latency_distribution(latency_bins: pd.DataFrame) -> Figure:
    """Draw exceedance curves of latency from merged histogram bins; both axes logarithmic.

    Latency is from submission to completion. All bins are of one workload, with a line for each drive; reads and writes
    are merged. Raises ValueError for unsuitable tables.
    """
    selection.require(latency_bins, "latency_bins")
    bins = latency_bins[latency_bins["count"] > 0]
    for column in ("measurement", "kind", "pattern", "read_share_pct", "block_size_bytes"):
        selection.require_one(bins, column, "latency_bins")
    groups = list(bins.groupby("drive", sort=False))
    colours = style.colours(len(groups))
    curves = [_curve(str(drive), group, place, colours[place]) for place, (drive, group) in enumerate(groups)]
    return Curves().draw("Latency distribution", curves)


_LEAST_DEEP = 0.01
_DEEPEST = 1e-6
"""Share of I/Os beyond 99.9999 %: a recording cannot determine rarer ones."""


@style.styled
def exceedance_of_drives(latency_bins: pd.DataFrame) -> Figure:
    """Draw the share of I/Os of each drive's last soak that took at least so long, tail at the top.

    Both axes are logarithmic. The legend has the highest of the nines above which every drive has at least ten I/Os.
    Runs of a drive are merged. Raises ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    percent = _deepest_nine(bins)
    curves, rows = [], []
    for drive, look in overlay.looks(bins).items():
        share = _share(bins[drive])
        if len(share) == 1:  # add a step there, half way to a share of zero
            share = pd.concat([share, pd.Series(0.5 / bins[drive]["count"].sum(), index=share.index)])
        name = f"{drive}: {percent:g} % in {format_latency(float(percentiles_us(bins[drive], [percent])[0]))}"
        curves.append(Curve(name, share, look.colour, look.dash, look.marker))
        rows.append(pd.DataFrame({"latency_us": share.index, "share": share.to_numpy(), "drive": drive}))
    title = f"Latency distribution of all drives, {overlay.workload(bins)}"
    figure = Curves(least=_LEAST_DEEP, deepest=_DEEPEST).draw(title, curves)
    overlay.note_coinciding(figure, pd.concat(rows), ["latency_us"], ["share"])
    return figure


def _deepest_nine(bins: dict[str, pd.DataFrame]) -> float:
    """Return the highest percentile above which every drive has ten I/Os, else the median."""
    fewest = min(int(part["count"].sum()) for part in bins.values())
    return max((percent for percent in NINES.values() if fewest * (100 - percent) / 100 >= 10), default=50.0)


@style.styled
def latency_by_turn(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the exceedance curve of latency of the last soak of each turn.

    Both tables hold the soaks of one recording that repeat over values. Raises ValueError for unsuitable tables.
    """
    soaks, subject = last_soaks(latency_bins, cells)
    colours = style.colours(len(soaks))
    curves = [_curve(name, bins, place, colours[place]) for place, (name, bins) in enumerate(soaks)]
    return Curves().draw(f"Latency distribution{subject}", curves)


def last_soaks(latency_bins: pd.DataFrame, cells: pd.DataFrame) -> tuple[list[tuple[str, pd.DataFrame]], str]:
    """Return name and bins with I/Os of the last soak of each turn, and the end of a title, the common workload.

    A turn has the name of its point with the demand, else of its workload, else of its value. Raises ValueError for
    none.
    """
    selection.require(latency_bins, "latency_bins")
    selection.require_one(cells, "recording", "cells")
    turns = cells[(cells["kind"] == "soak") & cells["phase_value"].notna()]
    bins = latency_bins[(latency_bins["kind"] == "soak") & latency_bins["phase_value"].notna()]
    bins = bins[bins["count"] > 0]
    last = [step for step in turns.groupby("phase_value", sort=False)["step"].max() if (bins["step"] == step).any()]
    if not last:
        raise ValueError("table 'latency_bins' has no soaks that are repeated over values")
    turns = turns.drop_duplicates("step").set_index("step").loc[last]
    several = turns["workload"].nunique() > 1
    soaks = []
    for step, turn in turns.iterrows():
        name = str(turn["workload"] if several else turn["phase_value"])
        if isinstance(turn["point"], str):
            name = f"{turn['point'].upper()} ({demand(int(turn['threads']), int(turn['queue_depth']))})"
        soaks.append((name, bins[bins["step"] == step]))
    return soaks, "" if several else f", {turns['workload'].iloc[0]}"


_FEW_IOS = 10
"""With fewer I/Os above it, a quantile is unreliable (our choice)."""
_LABEL = "I/Os that were as fast (% of all)"


@style.styled
def nines(latency_bins: pd.DataFrame) -> Figure:
    """Draw the latency that 50, 90, 99 … 99.9999 % of the I/Os of one workload did not exceed.

    Dots with fewer than ten I/Os above are hollow; those with fewer than one are left out. Raises ValueError for
    unsuitable tables.
    """
    for column in ("drive", "measurement", "kind", "workload"):
        selection.require_one(latency_bins, column, "latency_bins")
    bins = {str(latency_bins["drive"].iloc[0]): latency_bins}
    return _draw(f"Latency at the nines, {overlay.workload(bins)}", bins)


@style.styled
def nines_of_drives(latency_bins: pd.DataFrame) -> Figure:
    """Draw the latency that 50, 90, 99 … 99.9999 % of the last soak's I/Os did not exceed, by drive.

    Dots with fewer than ten I/Os above are hollow; those with fewer than one are left out. Runs of a drive are merged.
    Raises ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    return _draw(f"The nines side by side, {overlay.workload(bins)}", bins)


def _draw(title: str, bins: dict[str, pd.DataFrame]) -> Figure:
    looks, marks = overlay.looks(bins), list[dict[str, Any]]()
    for drive, part in bins.items():
        for row in quantiles.nines(part).itertuples():
            few = row.ios_above < _FEW_IOS
            marks.append({
                "row": row.quantile_pct, "text": f"{row.quantile_pct:g}", "told": f"{row.quantile_pct:g} % of all",
                "line": drive, "value": row.latency_us, "number": format_latency(row.latency_us), "hollow": few,
                "colour": looks[drive].colour, "marker": looks[drive].marker,
                "gid": "unreliable" if few else "reliable", "name": f"{drive}, unreliable" if few else drive,
            })  # fmt: skip
    table = pd.DataFrame(marks).sort_values("row", kind="stable")
    figure = Rows(title, {"": Across("Latency (µs, ms, s), log scale, ← better", log=True, texts=LATENCY)}).draw(
        table, [dot(drive, look.colour, marker=look.marker) for drive, look in looks.items()],
        notes=[f"hollow: unreliable, fewer than {_FEW_IOS} I/Os above" if table["hollow"].any() else ""],
    )  # fmt: skip
    figure.axes[0].set_ylabel(_LABEL)
    return figure


_MARKED = 0.01
"""Share of the slowest I/Os whose part of the time is in the legend."""


@style.styled
def tail(latency_bins: pd.DataFrame) -> Figure:
    """Draw the part of the total latency due to the slowest I/Os against their share, by drive.

    The values are of each drive's last soak, runs merged. On the dashed line all I/Os take the same time. Raises
    ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    figure = style.new_figure(f"Tail contribution, {overlay.workload(bins)}")
    if any(part["latency_ns"].nunique() > 1 for part in bins.values()):
        style.note(figure, f"in the legend: part of the time that the slowest {100 * _MARKED:g} % of the I/Os take")
    axes = figure.subplots()
    curves: list[pd.DataFrame] = []
    least, least_time = 0.1, 0.1
    for drive, look in overlay.looks(bins).items():
        whole = tail_contribution(bins[drive])
        name = f"{drive}: {100 * _share_of_time(whole):.3g} %"
        if len(whole) == 1:  # as on the dashed line, as far as its I/Os reach
            one_io = 1 / float(bins[drive]["count"].sum())
            whole = pd.concat([whole, pd.DataFrame({"share_of_ios": [one_io], "share_of_time": [one_io]})])
            name = f"{drive}: all I/Os took {format_latency(float(bins[drive]['latency_ns'].iloc[0]) / 1e3)}"
        curve = whole[whole["share_of_ios"] >= _DEEPEST]
        curves.append(curve.assign(drive=drive, place=range(len(curve), 0, -1)))  # counted from the slowest
        least = min(least, float(curve["share_of_ios"].min()))
        least_time = min(least_time, float(curve["share_of_time"].min()))
        axes.plot(100 * curve["share_of_ios"], 100 * curve["share_of_time"], color=look.colour, linestyle=look.dash,
                  marker=look.marker, markevery=max(1, len(curve) // 10), markersize=4.5, label=name,
                  gid="line")  # fmt: skip
    overlay.note_coinciding(figure, pd.concat(curves), ["place"], ["share_of_ios", "share_of_time"])
    shares = [100.0, 10.0, 1.0, 0.1, 0.01, 0.001, 0.0001]
    axes.plot([100, 100 * least], [100, 100 * least], color=style.MUTED, linewidth=1, linestyle="--",
              label="all I/Os alike", gid="alike")  # fmt: skip
    axes.axvline(100 * _MARKED, color=style.MUTED, linewidth=0.8, gid="marked")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(130, 100 * min(least, _MARKED) / 1.3)
    axes.set_ylim(100 * min(least, least_time) / 1.3, 130)
    for axis in (axes.xaxis, axes.yaxis):
        ax.ticks(axis, shares, PLAIN)
    axes.set_xlabel("Slowest I/Os (% of all), log scale")
    axes.set_ylabel("Part of the time (%), log scale")
    ax.legend(figure, axes)
    return figure


def _share_of_time(curve: pd.DataFrame) -> float:
    """Return the part of the slowest `_MARKED` of all I/Os; linear between bins, as I/Os of a bin are equal."""
    shares = np.append(curve["share_of_ios"], 0.0)[::-1], np.append(curve["share_of_time"], 0.0)[::-1]
    return float(np.interp(_MARKED, *shares))
