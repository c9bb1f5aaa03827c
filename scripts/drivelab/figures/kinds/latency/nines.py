"""Latency at 50 to 99.9999 % of the I/Os and between these shares, of one drive and of several."""

from __future__ import annotations

from collections.abc import Iterable
from math import log10

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values import latency_values as quantiles
from drivelab.analysis.values.latency_values import NINES
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.base.words import tell
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="nines",
        title="Latency between the nines",
        caption=(
            "Latency that a share of the I/Os did not exceed, from 50 to 99.9999 %, and the curve between "
            "these percentiles. From merged histograms. Hollow dots have fewer than ten I/Os above them and "
            "are unreliable."
        ),
        tables=("latency_bins",),
        when=("nines",),
        place=200,
        rows="last_soak",
    ),
    FigureKind(
        name="between_nines_of_drives",
        title="Latency between the nines of all drives",
        caption=("Latency of all drives from the median to the slowest of a million I/Os. From merged histograms."),
        tables=("latency_bins",),
        when=("drives_latency",),
        place=322,
    ),
    FigureKind(
        name="nines_of_drives",
        title="The nines side by side",
        caption=(
            "Latency that 50 to 99.9999 % of each drive's I/Os did not exceed, from merged histograms. "
            "Hollow dots have fewer than ten I/Os above them and are unreliable."
        ),
        tables=("latency_bins",),
        when=("drives_latency",),
        place=321,
    ),
)
_FEW_IOS = 10
"""With fewer I/Os above it, a quantile is unreliable (our choice)."""


@style.styled
def nines(latency_bins: pd.DataFrame) -> Figure:
    """Draw latency against the share of I/Os that were as fast, in nines, for one workload.

    The quantiles 50, 90, 99 … 99.9999 % are dots with their value. With fewer than ten I/Os above, dots are hollow;
    those with fewer than one are left out. Raises ValueError for unsuitable tables.
    """
    for column in ("drive", "measurement", "kind", "workload"):
        selection.require_one(latency_bins, column, "latency_bins")
    table, curve = quantiles.nines(latency_bins), quantiles.between_the_nines(latency_bins)
    figure = style.new_figure(f"Latency between the nines, {latency_bins['workload'].iloc[0]}")
    axes = figure.subplots()
    colour = style.colours(1)[0]
    if len(curve):
        axes.plot(curve["nines"], curve["latency_us"], drawstyle="steps-post", color=colour, linewidth=1.6,
                  label="between the nines", gid="line")  # fmt: skip
    places = [_nines(percent) for percent in table["quantile_pct"]]
    for reliable, face, label in ((True, colour, "quantile"),
                              (False, "white", f"unreliable: fewer than {_FEW_IOS} I/Os above")):  # fmt: skip
        chosen = [(place, row) for place, row in zip(places, table.itertuples(), strict=True)
                  if (row.ios_above >= _FEW_IOS) == reliable]  # fmt: skip
        if chosen:
            axes.plot([place for place, _ in chosen], [row.latency_us for _, row in chosen], linestyle="none",
                      marker="o", markersize=7, markerfacecolor=face, markeredgecolor=colour, label=label,
                      gid="reliable" if reliable else "unreliable")  # fmt: skip
        for place, row in chosen:
            axes.annotate(format_latency(row.latency_us), (place, row.latency_us), (-4, 8), va="bottom", ha="right",
                          textcoords="offset points", fontsize=style.SMALL_PT, gid="number",
                          in_layout=False)  # fmt: skip
    latencies = [*table["latency_us"], *curve["latency_us"]]
    ax.log_axis(axes, "y", min(latencies) / 1.2, max(latencies) * 1.4, format_latency)
    axes.set_ylabel("Latency (µs, ms, s), log scale")
    across(axes, table["quantile_pct"], -0.3, max(*places, float(curve["nines"].max() if len(curve) else 0)) + 0.3)
    ax.legend(figure, axes)
    return figure


def across(axes: Axes, percents: Iterable[float], low: float, high: float) -> None:
    """Set an x axis in nines (1 for 90 %, 2 for 99 % …) from `low` to `high`, with ticks at `percents`."""
    places = {_nines(percent): percent for percent in percents}
    axes.set_xlim(low, high)
    ax.ticks(axes.xaxis, [place for place in places if place <= high], lambda place: f"{places[place]:g}")
    tell(axes.xaxis, lambda place: f"{100 * (1 - 10.0**-place):.7g} %")
    axes.set_xlabel("I/Os that were as fast (% of all), log scale towards 100 %")


def _nines(percent: float) -> float:
    return -log10(1 - percent / 100)


@style.styled
def between_nines_of_drives(latency_bins: pd.DataFrame) -> Figure:
    """Draw latency against the share of I/Os that were as fast, in nines, for each drive's last soak.

    Runs of a drive are merged. A curve ends where only one I/O is slower. Raises ValueError for unsuitable tables, such
    as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    curves = {drive: quantiles.between_the_nines(part) for drive, part in bins.items()}
    curves = {drive: curve if len(curve) else _only_one(bins[drive]) for drive, curve in curves.items()}
    points = pd.concat([curve.assign(drive=drive) for drive, curve in curves.items()])
    workload = next(iter(bins.values()))["workload"].iloc[0]
    figure = style.new_figure(f"Latency between the nines of all drives, {workload}")
    shares = points.assign(share=10 ** -points["nines"])  # as on the other axis of `exceedance_of_drives`
    overlay.note_coinciding(figure, shares, ["latency_us"], ["share"])
    axes = figure.subplots()
    for drive, look in overlay.looks(bins).items():
        curve = curves[drive]
        axes.plot(curve["nines"], curve["latency_us"], drawstyle="steps-post", color=look.colour, linestyle=look.dash,
                  marker=look.marker, markevery=max(1, len(curve) // 8), markersize=4.5, label=drive,
                  gid="line")  # fmt: skip
    ax.log_axis(axes, "y", float(points["latency_us"].min()), float(points["latency_us"].max()), format_latency)
    axes.set_ylabel("Latency (µs, ms, s), log scale")
    across(axes, NINES.values(), 0, float(points["nines"].max()) + 0.2)
    ax.legend(figure, axes)
    return figure


def _only_one(bins: pd.DataFrame) -> pd.DataFrame:
    """Return the flat curve of a drive whose I/Os all took the same time, as far as its I/Os reach."""
    ios = int(bins["count"].sum())
    return pd.DataFrame({"nines": [0.0, log10(max(ios, 1))], "latency_us": [bins["latency_ns"].iloc[0] / 1000] * 2})


_FEW_ABOVE = 10
"""With fewer I/Os above it, a quantile is unreliable (our choice), as in the figure of one drive."""
_LINE_IN = 0.165


@style.styled
def nines_of_drives(latency_bins: pd.DataFrame) -> Figure:
    """Draw the latency that 50, 90, 99 … 99.9999 % of the last soak's I/Os did not exceed, by drive.

    Dots with fewer than ten I/Os above are hollow; those with fewer than one are left out. Runs of a drive are merged.
    Raises ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    looks = overlay.looks(bins)
    tables = {drive: quantiles.nines(part) for drive, part in bins.items()}
    percents = list(max(tables.values(), key=len)["quantile_pct"])
    figure = style.new_figure(f"The nines side by side, {latency_bins_workload(bins)}",
                              height_in=max(3.4, 1.7 + len(percents) * (_LINE_IN * len(looks) + 0.1)))  # fmt: skip
    axes = figure.subplots()
    offsets = (np.arange(len(looks)) - (len(looks) - 1) / 2) * 0.8 / len(looks)
    unreliable = False
    for (drive, look), offset in zip(looks.items(), offsets, strict=True):
        table = tables[drive]
        reliable = (table["ios_above"] >= _FEW_ABOVE).to_numpy()
        y, latency_us = np.arange(len(table)) + offset, table["latency_us"].to_numpy(dtype=float)
        for chosen, face, gid in ((reliable, look.colour, "reliable"), (~reliable, "white", "unreliable")):
            if chosen.any():
                axes.plot(latency_us[chosen], y[chosen], linestyle="none", marker=look.marker, markersize=6,
                          markeredgecolor=look.colour, markerfacecolor=face, gid=gid,
                          label=drive if gid == "reliable" else f"{drive}, unreliable")  # fmt: skip
        unreliable |= bool((~reliable).any())
        for place, value in zip(y, latency_us, strict=True):
            axes.annotate(format_latency(value), (value, place), (7, 0), textcoords="offset points", va="center",
                          fontsize=style.SMALL_PT, gid="number", in_layout=False)  # fmt: skip
    every = np.concatenate([table["latency_us"].to_numpy(dtype=float) for table in tables.values()])
    ax.log_axis(axes, "x", float(every.min()), float(every.max()), format_latency)
    low, high = axes.get_xlim()
    axes.set_xlim(low, high * (high / low) ** 0.14)  # room for the last numbers
    axes.set_xlabel("Latency (µs, ms, s), log scale, ← better")
    axes.set_yticks(range(len(percents)), [f"{percent:g}" for percent in percents])
    axes.set_ylim(len(percents) - 0.5, -0.5)
    axes.set_ylabel("I/Os that were as fast (% of all)")
    axes.grid(visible=False, axis="y")
    for edge in range(1, len(percents)):
        axes.axhline(edge - 0.5, color="#dcdcdc", linewidth=0.7, zorder=0)
    if unreliable:
        style.note(figure, f"hollow: unreliable, fewer than {_FEW_ABOVE} I/Os above")
    handles = [line for line in axes.get_lines() if line.get_label() in looks]
    ax.legend(figure, axes, handles=handles)
    return figure


def latency_bins_workload(bins: dict[str, pd.DataFrame]) -> str:
    """Return the workload of all drives."""
    return str(next(iter(bins.values()))["workload"].iloc[0])
