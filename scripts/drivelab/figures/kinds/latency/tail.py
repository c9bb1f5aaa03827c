"""Tail contribution: share of the total latency due to the slowest I/Os."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values.latency_values import tail_contribution
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="tail",
        title="Tail contribution",
        caption=(
            "Share of the total latency that is due to the slowest I/Os. On the dashed line all I/Os take "
            "the same time; the further a curve is above it, the more a few slow I/Os cost."
        ),
        tables=("latency_bins",),
        when=("sliced", "drives_latency"),
        place=330,
    ),
)

_MARKED = 0.01
"""Share of the slowest I/Os whose part of the time is in the legend."""
_DEEPEST = 1e-6


@style.styled
def tail(latency_bins: pd.DataFrame) -> Figure:
    """Draw the part of the total latency due to the slowest I/Os against their share, by drive.

    The values are of each drive's last soak, runs merged. On the dashed line all I/Os take the same time. Raises
    ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    workload = next(iter(bins.values()))["workload"].iloc[0]
    figure = style.new_figure(f"Tail contribution, {workload}")
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
    axes.axvline(100 * _MARKED, color=style.MUTED, linewidth=0.8, label="_marked", gid="marked")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(130, 100 * min(least, _MARKED) / 1.3)
    axes.set_ylim(100 * min(least, least_time) / 1.3, 130)
    for axis in (axes.xaxis, axes.yaxis):
        ax.ticks(axis, shares, "{:g}".format)
    axes.set_xlabel("Slowest I/Os (% of all), log scale")
    axes.set_ylabel("Part of the time (%), log scale")
    ax.legend(figure, axes)
    return figure


def _share_of_time(curve: pd.DataFrame) -> float:
    """Return the part of the slowest `_MARKED` of all I/Os; linear between bins, as I/Os of a bin are equal."""
    shares = np.append(curve["share_of_ios"], 0.0)[::-1], np.append(curve["share_of_time"], 0.0)[::-1]
    return float(np.interp(_MARKED, *shares))
