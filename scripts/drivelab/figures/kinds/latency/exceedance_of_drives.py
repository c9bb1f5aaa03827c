"""Exceedance curves of several drives, to 99.9999 % of the I/Os."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values.latency_values import NINES, percentiles_us
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.kinds.latency.latency_distribution import exceedance, nines_axis
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="exceedance_of_drives",
        title="Latency distribution of all drives",
        caption=(
            "Share of each drive's I/Os that were faster than a latency, up to 99.9999 %. The legend has the "
            "highest percentile above which every drive has at least ten I/Os."
        ),
        tables=("latency_bins",),
        when=("drives_latency",),
        place=323,
    ),
)

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
    every = pd.concat(bins.values())
    percent = _deepest_nine(bins)
    figure = style.new_figure(f"Latency distribution of all drives, {every['workload'].iloc[0]}")
    axes = figure.subplots()
    smallest = 1.0
    curves = {drive: _with_a_step(exceedance(part), int(part["count"].sum())) for drive, part in bins.items()}
    rows = [curve.rename_axis("latency_us").rename("share").reset_index().assign(drive=drive)
            for drive, curve in curves.items()]  # fmt: skip
    overlay.note_coinciding(figure, pd.concat(rows), ["latency_us"], ["share"])
    for drive, look in overlay.looks(bins).items():
        curve = curves[drive]
        smallest = min(smallest, float(curve.min()))
        latency = format_latency(float(percentiles_us(bins[drive], [percent])[0]))
        axes.plot(curve.index, curve, drawstyle="steps-pre", color=look.colour, linestyle=look.dash,
                  marker=look.marker, markevery=max(1, len(curve) // 8), markersize=4.5,
                  label=f"{drive}: {percent:g} % in {latency}", gid="line")  # fmt: skip
    nines_axis(axes, every, min(max(smallest, _DEEPEST), _LEAST_DEEP))
    ax.legend(figure, axes)
    return figure


def _with_a_step(curve: pd.Series, ios: int) -> pd.Series:
    """Return the curve; with a single latency add a step there, half way to a share of zero."""
    return curve if len(curve) > 1 else pd.concat([curve, pd.Series(0.5 / ios, index=curve.index)])


def _deepest_nine(bins: dict[str, pd.DataFrame]) -> float:
    """Return the highest percentile above which every drive has ten I/Os, else the median."""
    fewest = min(int(part["count"].sum()) for part in bins.values())
    return max((percent for percent in NINES.values() if fewest * (100 - percent) / 100 >= 10), default=50.0)
