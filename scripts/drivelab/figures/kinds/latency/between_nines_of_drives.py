"""Latency of several drives between the nines."""

from __future__ import annotations

from math import log10

import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values import latency_values as quantiles
from drivelab.analysis.values.latency_values import NINES
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.kinds.latency.nines import across
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="between_nines_of_drives",
        title="Latency between the nines of all drives",
        caption=("Latency of all drives from the median to the slowest of a million I/Os. From merged histograms."),
        tables=("latency_bins",),
        when=("drives_latency",),
        place=322,
    ),
)


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
