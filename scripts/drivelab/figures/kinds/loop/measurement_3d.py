"""Window averages by block size and read/write mix, as lines (2D) and as columns (3D)."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import Quantity, format_kib, format_number, quantity
from drivelab.figures.base.words import grouped, say
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
    scale = quantity(metric, table.max(axis=None))
    table = table / scale.divisor

    by_mix = len(table.index) == 1 and len(table.columns) > 1
    figure = style.new_figure(f"{scale.name} by {'read share' if by_mix else 'block size and mix'}")
    axes = figure.subplots()
    bars = by_mix and all(str(selection.mix(column)).rpartition(" ")[2] in _PURE for column in table.columns)
    if bars:
        _as_bars(axes, table)
    elif by_mix:
        _by_read_share(axes, table)
    else:
        _by_block_size(axes, table)
    values = table.stack().tolist()
    ax.scale_y(axes, values, scale, log=ax.is_wide(values) and not bars)  # bars begin at zero
    style.alarm(figure, selection.not_steady(steady_state))
    if not bars:
        ax.legend(figure, axes, "Block size" if by_mix else "Read/write\nmix (%)")
    return figure


def _by_block_size(axes: Axes, table: pd.DataFrame) -> None:
    mixes = list(table.columns)
    for colour, marker, mix in zip(style.ordered_colours(len(mixes)), style.MARKERS * 11, mixes, strict=False):
        line = table[mix].dropna()
        axes.plot(line.index, line, color=colour, marker=marker, label=selection.mix(mix), gid="line")
    sizes = [int(size) for size in table.index]
    ax.binary_axis(axes, sizes, format_kib, room=1.4, apart=1.0)
    axes.set_xlabel("Block size (KiB), log scale")


def _as_bars(axes: Axes, table: pd.DataFrame) -> None:
    """Draw pure reads and pure writes of one block size as bars, as two values make no line."""
    (size,) = table.index
    names, values = [], [float(value) for value in table.loc[size]]
    for column in table.columns:
        pattern, _, mix = str(selection.mix(column)).rpartition(" ")
        names.append(f"{pattern} {format_size(int(size))} {mix}\n{_PURE[mix]}".strip())
    axes.bar(range(len(values)), values, 0.5, color=style.colours(len(values)), gid="bar")
    for place, value in enumerate(values):
        axes.annotate(format_number(value), (place, value), (0, 3), textcoords="offset points", ha="center",
                      fontsize=style.SMALL_PT, gid="number")  # fmt: skip
    axes.set_xticks(range(len(values)), names)
    axes.set_xlabel("Block size, read/write mix (%)")
    axes.grid(visible=False, axis="x")


def _by_read_share(axes: Axes, table: pd.DataFrame) -> None:
    """Draw the mixes of one block size on the x axis, a line per pattern."""
    (size,) = table.index
    values = table.loc[size]
    by_pattern: dict[str, dict[float, float]] = {}
    for column, value in values.items():
        pattern, _, mix = str(selection.mix(column)).rpartition(" ")
        by_pattern.setdefault(pattern, {})[float(mix.partition("/")[0])] = float(value)
    for place, (pattern, line) in enumerate(sorted(by_pattern.items())):
        name = f"{pattern} {format_size(int(size))}".strip()
        shares = sorted(line)
        axes.plot(shares, [line[share] for share in shares], color=style.colours(2)[place],
                  marker=style.MARKERS[place], label=name, gid="line")  # fmt: skip
    axes.set_xlim(-4, 104)
    axes.xaxis.set_major_locator(FixedLocator(sorted({share for line in by_pattern.values() for share in line})))
    axes.set_xlabel("Read share (% of the I/Os)")
