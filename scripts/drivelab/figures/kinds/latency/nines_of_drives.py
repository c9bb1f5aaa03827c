"""Latencies of several drives at the nines, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values import latency_values as quantiles
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.registry import FigureKind

FIGURES = (
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
        reliable = (table["ios_above"] >= _FEW_IOS).to_numpy()
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
        style.note(figure, f"hollow: unreliable, fewer than {_FEW_IOS} I/Os above")
    handles = [line for line in axes.get_lines() if line.get_label() in looks]
    ax.legend(figure, axes, handles=handles)
    return figure


def latency_bins_workload(bins: dict[str, pd.DataFrame]) -> str:
    """Return the workload of all drives."""
    return str(next(iter(bins.values()))["workload"].iloc[0])
