"""Window averages by block size and read/write mix as columns in three dimensions, as on the slides of the PTS."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_kib, format_number, grouped, quantity
from drivelab.figures.base.words import say
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "measurement_3d", "Measurement, 3D",
        "Average over the measurement window by block size and R/W mix. The table has the same numbers.",
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
_LIGHT = (0.55, 1.0, 0.8)
"""Light on the faces of a column, in the order of `_faces`."""


@style.styled
def measurement_3d(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw columns of the window average of `metric`.

    Both axes have their taller end at the back. `cells` and `steady_state` hold one drive and run. For `max_latency_us`
    the maximum in the window is shown. Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, "steady_state")
    table = selection.window_averages(selection.one_measurement(cells), steady_state, metric)
    scale = quantity(metric, table.max(axis=None))
    table = _tall_at_the_back(table / scale.divisor)
    mixes, sizes = list(table.columns), list(table.index)
    figure = style.new_figure(f"{scale.name} by block size and mix", height_in=5.2)
    axes = figure.add_subplot(projection="3d", computed_zorder=False)
    colour_of = dict(zip(sorted(sizes), style.ordered_colours(len(sizes)), strict=True))
    for y in reversed(range(len(sizes))):  # back to front: matplotlib's order hides columns
        for x in range(len(mixes)):
            height = table.iat[y, x]
            if np.isfinite(height):
                colours = [tuple(light * part for part in colour_of[sizes[y]]) for light in _LIGHT]
                column = Poly3DCollection(
                    _faces(x, y, height), facecolors=colours, edgecolor="white", linewidth=0.3,
                    zorder=10 + x - len(mixes) * y, gid=f"{mixes[x]}|{sizes[y]}",
                )  # fmt: skip
                axes.add_collection3d(column, autolim=False)
                place = f"Read/write mix: {mixes[x]} %\nBlock size: {format_kib(sizes[y])} KiB"
                say(column, [f"{place}\n{scale.name}: {grouped(height)} {scale.unit}"], top=(x, y, height))
    axes.set_xticks(range(len(mixes)), mixes)
    axes.set_yticks(range(len(sizes)), [format_kib(size) for size in sizes])
    axes.set_xlim(-0.6, max(len(mixes) - 0.4, 1))
    axes.set_ylim(-0.6, max(len(sizes) - 0.4, 1))
    axes.set_zlim(0, table.max(axis=None) * 1.02 or 1.0)
    axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
    axes.set_xlabel("Read/write mix (%)", labelpad=8)
    axes.set_ylabel("Block size (KiB)", labelpad=8)
    axes.set_zlabel(scale.label, labelpad=6)
    axes.view_init(elev=28, azim=-55)
    axes.set_box_aspect((1.35, 1.3, 0.85), zoom=0.9)
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


def _faces(x: float, y: float, height: float) -> list[list[tuple[float, float, float]]]:
    """Return the three visible faces of a column: towards more x, towards less y, and the top."""
    left, right, front, back = x - _WIDTH / 2, x + _WIDTH / 2, y - _WIDTH / 2, y + _WIDTH / 2
    return [
        [(right, front, 0.0), (right, back, 0.0), (right, back, height), (right, front, height)],
        [(left, front, 0.0), (right, front, 0.0), (right, front, height), (left, front, height)],
        [(left, front, height), (right, front, height), (right, back, height), (left, back, height)],
    ]


def _tall_at_the_back(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rows ascending and columns descending in height, so that tall columns are at the back."""
    by_size, by_mix = table.mean(axis=1), table.mean(axis=0)
    if by_size.iloc[0] > by_size.iloc[-1]:
        table = table.iloc[::-1]
    if by_mix.iloc[0] < by_mix.iloc[-1]:
        table = table.iloc[:, ::-1]
    return table
