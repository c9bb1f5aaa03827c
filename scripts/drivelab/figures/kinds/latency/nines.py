"""Latency at 50 to 99.9999 % of the I/Os, and the curve between."""

from __future__ import annotations

from collections.abc import Iterable
from math import log10

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values import latency_values as quantiles
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
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
