"""Heat map of a trace's reads and writes by address and time."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_number
from drivelab.figures.kinds.trace import trace_common as common
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="trace_heat",
        title="Access over time and address",
        caption="Start addresses of reads and writes over time; darker cells have more of them.",
        tables=("trace_heat", "trace_over_time"),
        status="trace_overview",
        when=("trace",),
        place=500,
    ),
)

_COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.85, 0.0, 256)))
"""Dark means many; no colour is too pale for paper."""
_FEW = 100
"""Below this count in the fullest cell, ticks at powers of ten are too few."""


@style.styled
def trace_heat(heat: pd.DataFrame, over_time: pd.DataFrame) -> Figure:
    """Draw reads and writes in cells of time and address, from tables `trace_heat` and `trace_over_time`.

    Raises ValueError for unsuitable tables.
    """
    selection.require(over_time, "trace_over_time")
    title = "Access over time and address"
    if heat.empty:
        return common.nothing(title, "The trace has no reads or writes of data.")
    edges, scale = common.edges_s(over_time), common.time(float(over_time["end_s"].iloc[-1]))
    low, high = int(heat["low_bytes"].min()), int(heat["high_bytes"].max())
    band = int(heat["high_bytes"].iloc[0] - heat["low_bytes"].iloc[0])
    address = common.size("Address", high)
    most = int(heat[["reads", "writes"]].to_numpy().max())
    norm = LogNorm(1, max(most, 2))
    figure = style.new_figure(title, height_in=4.4)
    grid = figure.add_gridspec(1, 3, width_ratios=(12, 12, 1))
    first = figure.add_subplot(grid[0, 0])
    panels = (first, figure.add_subplot(grid[0, 1], sharey=first))
    panels[1].tick_params(labelleft=False)
    for axes, column in zip(panels, ("reads", "writes"), strict=True):
        cells = np.full((round((high - low) / band), len(over_time)), np.nan)
        row = ((heat["low_bytes"] - low) // band).to_numpy(np.int64)
        place = np.searchsorted(edges, heat["begin_s"].to_numpy(float) + 1e-12, side="right") - 1
        counts = heat[column].to_numpy(float)
        cells[row[counts > 0], place[counts > 0]] = counts[counts > 0]
        _panel(axes, cells, edges / scale.divisor, np.linspace(low, high, len(cells) + 1) / address.divisor, norm)
        axes.collections[0].set_label(column)  # named when the reader points at a cell
        axes.set_title(f"{_many(int(heat[column].sum()), column)}", fontsize=style.TEXT_PT)
        axes.set_xlabel(f"Time ({scale.unit})")
        axes.xaxis.set_major_locator(MaxNLocator(5))
        ax.plain_numbers(axes, "x")
    panels[0].set_ylabel(address.label)
    ax.plain_numbers(panels[0], "y")
    bar = figure.colorbar(panels[0].collections[0], cax=figure.add_subplot(grid[0, 2]))
    bar.set_label("Requests that begin in a cell, log scale")
    if most < _FEW:
        bar.ax.yaxis.set_major_locator(FixedLocator([at for at in (1, 2, 3, 5, 10, 20, 50) if at <= max(most, 2)]))
    bar.ax.yaxis.set_major_formatter(lambda value, _: format_number(value))
    bar.ax.minorticks_off()
    width = common.duration(float(edges[1] - edges[0]))
    style.note(figure, f"A cell is {width} long and {_amount(band)} high; from {_amount(low)} to {_amount(high)}")
    return figure


def _panel(axes: Axes, cells: np.ndarray, times: np.ndarray, addresses: np.ndarray, norm: LogNorm) -> None:
    # An image, as thousands of cells as paths would take megabytes.
    axes.pcolormesh(times, addresses, np.ma.masked_invalid(cells), norm=norm, cmap=_COLOURS, rasterized=True, gid="map")
    axes.set_xlim(times[0], times[-1])
    axes.set_ylim(addresses[0], addresses[-1])
    axes.grid(visible=False)


def _many(count: int, column: str) -> str:
    return f"{count:,} {column[:-1] if count == 1 else column}"


def _amount(size_bytes: float) -> str:
    scale = common.size("", size_bytes)
    return f"{size_bytes / scale.divisor:.4g} {scale.unit}"
