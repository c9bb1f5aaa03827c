"""Values by block size and read/write mix as columns in three dimensions, a page of each PTS report."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_number, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "measurement_3d", "Measurement, 3D",
        "Average over the measurement window by block size and R/W mix.",
        when=("surface",), place=40, rows="loops", one_loop=True, of_window=True,
    ),
    FigureKind(
        "measurement_3d_max", "Measurement, 3D, maximum latency",
        "Maximum latency in the measurement window by block size and R/W mix.",
        when=("maximum_surface",), place=80, rows="loops", one_loop=True, of_window=True,
        options={"metric": "max_latency_us"}, draw="measurement_3d",
    ),
)  # fmt: skip
_WIDTH = 0.62


def measurement_3d(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw columns of the window average of `metric` (its maximum for `max_latency_us`), the tall ends at the back.

    `cells` and `steady_state` hold one drive and run. Source: report pages of the SNIA PTS.
    """
    selection.require(steady_state, "steady_state")
    table = selection.window_averages(selection.one_measurement(cells), steady_state, metric)
    scale = quantity(metric, table.max(axis=None))
    table = _tall_at_the_back(table / scale.divisor)
    mixes, sizes = list(table.columns), list(table.index)
    figure = style.new_figure(f"{scale.name} by block size and mix", height_in=5.2)
    axes: Any = figure.add_subplot(projection="3d", computed_zorder=False)
    colour_of = dict(zip(sorted(sizes), style.ordered_colours(len(sizes)), strict=True))
    for y in reversed(range(len(sizes))):  # back to front: matplotlib's order hides columns
        for x in range(len(mixes)):
            if np.isfinite(height := table.iat[y, x]):
                axes.bar3d(
                    x - _WIDTH / 2, y - _WIDTH / 2, 0, _WIDTH, _WIDTH, height, color=colour_of[sizes[y]],
                    edgecolor="white", linewidth=0.3, zorder=10 + x - len(mixes) * y, gid=f"{mixes[x]}|{sizes[y]}",
                )  # fmt: skip
    axes.set_xticks(range(len(mixes)), mixes)
    axes.set_yticks(range(len(sizes)), [f"{size / 1024:g}" for size in sizes])
    axes.set(xlim=(-0.6, max(len(mixes) - 0.4, 1)), ylim=(-0.6, max(len(sizes) - 0.4, 1)))
    axes.set_zlim(0, table.max(axis=None) * 1.02 or 1.0)
    axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
    axes.set_xlabel("Read/write mix (%)", labelpad=8)
    axes.set_ylabel("Block size (KiB)", labelpad=8)
    axes.set_zlabel(scale.label, labelpad=6)
    axes.view_init(elev=28, azim=-55)
    axes.set_box_aspect((1.35, 1.3, 0.85), zoom=0.9)
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


def _tall_at_the_back(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rows ascending and columns descending in height, so that tall columns are at the back."""
    by_size, by_mix = table.mean(axis=1), table.mean(axis=0)
    rows = slice(None, None, -1 if by_size.iloc[0] > by_size.iloc[-1] else 1)
    columns = slice(None, None, -1 if by_mix.iloc[0] < by_mix.iloc[-1] else 1)
    return table.iloc[rows, columns]
