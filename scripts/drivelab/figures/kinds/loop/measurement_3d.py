"""Window averages by block size and read/write mix, as lines (2D) and as columns (3D)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import Quantity, format_kib, format_number, metric_name, quantity
from drivelab.figures.base.words import grouped, say
from drivelab.figures.families.lines import BLOCK_SIZE, READS, Lines, apart, in_order
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="measurement_3d",
        title="Measurement, 3D",
        caption=("Average over the measurement window by block size and R/W mix. The table has the same numbers."),
        tables=("cells", "steady_state"),
        when=("surface",),
        place=40,
        rows="loops",
        one_loop=True,
        of_window=True,
    ),
    FigureKind(
        name="measurement_3d_max",
        title="Measurement, 3D, maximum latency",
        caption="Maximum latency in the measurement window by block size and R/W mix.",
        tables=("cells", "steady_state"),
        when=("maximum_surface",),
        place=80,
        rows="loops",
        one_loop=True,
        of_window=True,
        options={"metric": "max_latency_us"},
    ),
    FigureKind(
        name="measurement_2d",
        title="Measurement, 2D",
        caption=(
            "Average over the measurement window against block size, a line for each R/W mix. For a test "
            "with one block size, the x axis is the read share."
        ),
        tables=("cells", "steady_state"),
        when=("grid",),
        place=30,
        rows="loops",
        one_loop=True,
        of_window=True,
    ),
)
_WIDTH = 0.62
_LIGHT = (0.55, 1.0, 0.8)
"""Light on the faces of a column, in the order of `_faces`."""


@style.styled
def measurement_3d(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw columns of the window average of `metric`, as on the slides of the PTS.

    Both axes have their taller end at the back. `cells` and `steady_state` hold one drive and run. For `max_latency_us`
    the maximum in the window is shown. Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, "steady_state")
    table = selection.window_averages(selection.one_measurement(cells), steady_state, metric)
    scale = quantity(metric, table.max(axis=None))
    table = _tall_at_the_back(table / scale.divisor)
    mixes, sizes = list(table.columns), list(table.index)

    figure = style.new_figure(f"{scale.name} by block size and mix", height_in=5.2, layout=False)
    axes = figure.add_subplot(projection="3d", computed_zorder=False)
    colour_of = dict(zip(sorted(sizes), style.ordered_colours(len(sizes)), strict=True))
    for y in reversed(range(len(sizes))):  # back to front: matplotlib's order hides columns
        for x in range(len(mixes)):
            height = table.iat[y, x]
            if np.isfinite(height):
                column = Poly3DCollection(
                    _faces(x, y, height),
                    facecolors=[_shade(colour_of[sizes[y]], light) for light in _LIGHT],
                    edgecolor="white",
                    linewidth=0.3,
                    zorder=10 + x - len(mixes) * y,
                    gid=f"{mixes[x]}|{sizes[y]}",
                )
                axes.add_collection3d(column, autolim=False)
                say(column, _lines(mixes[x], sizes[y], height, scale), at=(x, y, height))
    axes.set_xticks(range(len(mixes)), [selection.mix(mix) for mix in mixes])
    axes.set_yticks(range(len(sizes)), [format_kib(size) for size in sizes])
    axes.set_xlim(-0.6, max(len(mixes) - 0.4, 1))
    axes.set_ylim(-0.6, max(len(sizes) - 0.4, 1))
    axes.set_zlim(0, table.max(axis=None) * 1.02 or 1.0)
    axes.zaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
    axes.set_xlabel("Read/write mix (%)", labelpad=8)
    axes.set_ylabel("Block size (KiB)", labelpad=8)
    axes.set_zlabel(scale.label, labelpad=6)
    axes.view_init(elev=28, azim=-55)
    axes.set_box_aspect((1.35, 1.3, 0.85), zoom=1.06)
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


def _lines(mix: object, size: int, height: float, scale: Quantity) -> list[str]:
    """Return the text for one column."""
    block = f"Block size: {format_kib(size)} KiB"
    return [f"Read/write mix: {selection.mix(mix)} %\n{block}\n{scale.name}: {grouped(height)} {scale.unit}"]


def _shade(colour: style.Colour, light: float) -> style.Colour:
    red, green, blue = (light * part for part in colour)
    return red, green, blue


def _tall_at_the_back(table: pd.DataFrame) -> pd.DataFrame:
    """Sort rows ascending and columns descending in height, so that tall columns are at the back."""
    by_size, by_mix = table.mean(axis=1), table.mean(axis=0)
    if by_size.iloc[0] > by_size.iloc[-1]:
        table = table.iloc[::-1]
    if by_mix.iloc[0] < by_mix.iloc[-1]:
        table = table.iloc[:, ::-1]
    return table


_PURE = {"100/0": "reads", "0/100": "writes"}


@style.styled
def measurement_2d(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw the window average of `metric` against block size, as in the TKperf report and the PTS.

    `cells` and `steady_state` hold one drive and run. For `max_latency_us` the maximum in the window is shown.
    Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, "steady_state")
    table = selection.window_averages(selection.one_measurement(cells), steady_state, metric)
    sizes, mixes = list(table.index), [str(selection.mix(column)) for column in table.columns]
    by_mix = len(sizes) == 1 and len(mixes) > 1
    if by_mix and all(mix.rpartition(" ")[2] in _PURE for mix in mixes):
        return _bars(table, quantity(metric, table.max(axis=None)), steady_state)
    table.columns = pd.Index(mixes, name="line")
    points = table.melt(ignore_index=False, value_name=metric).reset_index().dropna(subset=[metric])
    if not by_mix:
        title = f"{metric_name(metric)} by block size and mix"
        lines = Lines(title, (metric,), BLOCK_SIZE, looks=in_order, legend="Read/write\nmix (%)")
    else:
        pattern, mix = points["line"].str.rpartition(" ")[0], points["line"].str.rpartition(" ")[2]
        line = [f"{name} {format_size(int(sizes[0]))}".strip() for name in pattern]
        points = points.assign(line=line, read_share_pct=mix.str.partition("/")[0].astype(float))
        points = points.sort_values(["line", "read_share_pct"])
        lines = Lines(f"{metric_name(metric)} by read share", (metric,), READS, looks=apart, legend="Block size")
    what = "maximum in the window" if metric == "max_latency_us" else "average of the window"
    return replace(lines, point=what).draw(points, steady_state)


def _bars(table: pd.DataFrame, scale: Quantity, steady_state: pd.DataFrame) -> Figure:
    """Draw pure reads and pure writes of one block size as bars, as two values make no line."""
    (size,) = table.index
    names, values = [], [float(value) / scale.divisor for value in table.loc[size]]
    for column in table.columns:
        pattern, _, mix = str(selection.mix(column)).rpartition(" ")
        names.append(f"{pattern} {format_size(int(size))} {mix}\n{_PURE[mix]}".strip())
    figure = style.new_figure(f"{scale.name} by read share")
    axes = figure.subplots()
    axes.bar(range(len(values)), values, 0.5, color=style.colours(len(values)), gid="bar")
    for place, value in enumerate(values):
        axes.annotate(format_number(value), (place, value), (0, 3), textcoords="offset points", ha="center",
                      fontsize=style.SMALL_PT, gid="number")  # fmt: skip
    axes.set_xticks(range(len(values)), names)
    axes.set_xlabel("Block size, read/write mix (%)")
    axes.grid(visible=False, axis="x")
    ax.scale_y(axes, values, scale)
    style.alarm(figure, selection.not_steady(steady_state))
    return figure
