"""Distributions as curves of the share above a value, with nines on the y axis: a figure declares its curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import LATENCY

COMPLETION = "Latency, submission to completion (µs, ms, s), log scale"
_LEAST_US = 0.1
"""Lowest end of the axis: a logarithmic axis has no zero."""
_MARKERS = 8
"""Markers along a curve that has any."""


@dataclass(frozen=True)
class Curve:
    """A distribution: the share of things that are at least so large, by ascending value."""

    name: str
    share: pd.Series
    colour: style.Colour
    dash: Any = "-"
    marker: str = ""
    gid: str = "line"


@dataclass(frozen=True)
class Curves:
    """Panels of curves: latencies in µs across, nines up; both logarithmic."""

    y_label: str = "Faster I/Os (% of all), log scale"
    least: float = 1.0
    """Smallest share that the axis must reach at least."""
    deepest: float = 0.0
    """Smallest share that is shown."""

    def draw(self, title: str, panels: Mapping[str, Sequence[Curve]]) -> Figure:
        """Draw the curves of each panel, by the label of its x axis, side by side."""
        figure = style.new_figure(title)
        grid = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (label, curves) in zip(grid, panels.items(), strict=True):
            for curve in curves:
                axes.plot(curve.share.index, curve.share, drawstyle="steps-pre", color=curve.colour,
                          linestyle=curve.dash, marker=curve.marker, markersize=4.5, label=curve.name, gid=curve.gid,
                          markevery=max(1, len(curve.share) // _MARKERS))  # fmt: skip
            ends = [end for curve in curves for end in curve.share.index[[0, -1]]]
            ax.log_axis(axes, "x", max(min(ends), _LEAST_US), max(*ends, _LEAST_US), LATENCY)
            axes.set_xlabel(label)
            if len(panels) > 1:
                ax.few_ticks(axes.xaxis)
        smallest = min(float(curve.share.min()) for curves in panels.values() for curve in curves)
        ax.nines_axis(grid[0], min(max(smallest, self.deepest), self.least) / 2, self.y_label)
        ax.legend(figure, grid[0], handles=[line for axes in grid for line in axes.get_lines()])
        return figure


def exceedance(values: pd.Series, counts: pd.Series) -> pd.Series:
    """Return the share of things that are at least as large as each value (1 at first), by ascending value."""
    merged = counts.astype(float).groupby(values.to_numpy()).sum().sort_index()
    merged = merged[merged > 0]
    return merged[::-1].cumsum()[::-1] / merged.sum()
