"""Exceedance curves of several drives, to 99.9999 % of the I/Os."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.latency import NINES, percentiles_us
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
            "Share of the I/Os of each drive that were faster than a latency, to all but one in a million. "
            "The legend has the deepest quantile that ten I/Os and more tell of every drive."
        ),
        tables=("latency_bins",),
        status="latency_bins",
        when=("drives_latency",),
        place=323,
    ),
)

_LEAST_DEEP = 0.01
_DEEPEST = 1e-6
"""Share of I/Os beyond 99.9999 %: what is rarer is no property that a recording could tell."""


@style.styled
def exceedance_of_drives(latency_bins: pd.DataFrame) -> Figure:
    """Share of I/Os of each drive's last soak that took at least so long; both axes logarithmic, the tail at the top.

    The legend has the deepest of the nines that ten I/Os and more tell of every drive. Runs of a drive are merged.
    Raises ValueError for unsuitable tables, such as several workloads.
    """
    bins = overlay.bins_by_drive(latency_bins)
    every = pd.concat(bins.values())
    percent = _told_of_all(bins)
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
    """Of a drive whose I/Os all took the same time a step there, half way to where none is; else the curve itself."""
    return curve if len(curve) > 1 else pd.concat([curve, pd.Series(0.5 / ios, index=curve.index)])


def _told_of_all(bins: dict[str, pd.DataFrame]) -> float:
    """The deepest quantile above which there are ten I/Os of every drive; the median for less."""
    fewest = min(int(part["count"].sum()) for part in bins.values())
    return max((one for one in NINES.values() if fewest * (100 - one) / 100 >= 10), default=50.0)
