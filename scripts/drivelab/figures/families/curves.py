"""Distributions as curves of the share above a value, with nines on the y axis: a figure declares its curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import LATENCY

_LEAST_US = 0.1
"""Lowest end of the axis: a logarithmic axis has no zero."""
_MARKERS = 8
"""Markers along a curve that has any."""


@dataclass(frozen=True)
class Curve:
    """A distribution: the share of things that are at least so large, by ascending value."""

    name: str
    share: pd.Series
    colour: Any
    dash: Any = "-"
    marker: str = ""
    gid: str = "line"


@dataclass(frozen=True)
class Curves:
    """Axes of curves: latencies in µs across, nines up; both logarithmic."""

    x_label: str = "Latency, submission to completion (µs, ms, s), log scale"
    y_label: str = "Faster I/Os (% of all), log scale"
    least: float = 1.0
    """Smallest share that the axis must reach at least."""
    deepest: float = 0.0
    """Smallest share that is shown."""

    @style.styled
    def draw(self, title: str, curves: Sequence[Curve]) -> Figure:
        """Draw a figure of curves."""
        figure = style.new_figure(title)
        axes = figure.subplots()
        self.draw_in(axes, curves)
        ax.legend(figure, axes)
        return figure

    def draw_in(self, axes: Axes, curves: Sequence[Curve], *, narrow: bool = False) -> None:
        """Draw curves in a panel, which may be narrow."""
        for curve in curves:
            axes.plot(curve.share.index, curve.share, drawstyle="steps-pre", color=curve.colour, linestyle=curve.dash,
                      marker=curve.marker, markevery=max(1, len(curve.share) // _MARKERS), markersize=4.5,
                      label=curve.name, gid=curve.gid)  # fmt: skip
        ends = [end for curve in curves for end in curve.share.index[[0, -1]]]
        ax.log_axis(axes, "x", max(min(ends), _LEAST_US), max(*ends, _LEAST_US), LATENCY)
        if narrow:
            ax.few_ticks(axes.xaxis)
        axes.set_xlabel(self.x_label)
        smallest = min(float(curve.share.min()) for curve in curves)
        ax.nines_axis(axes, min(max(smallest, self.deepest), self.least) / 2, self.y_label)


def exceedance(values: pd.Series, counts: pd.Series) -> pd.Series:
    """Return the share of things that are at least as large as each value (1 at first), by ascending value."""
    merged = counts.astype(float).groupby(values.to_numpy()).sum().sort_index()
    merged = merged[merged > 0]
    return merged[::-1].cumsum()[::-1] / merged.sum()
