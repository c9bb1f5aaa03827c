"""Measurement 2D: window average against block size, a line per read/write mix."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_kib, format_number, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
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
