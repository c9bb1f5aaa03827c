"""Latency of each cell in the measurement window as tables: minimum, mean, maximum, five nines."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from drivelab.analysis.values.latency_values import has_ios_beyond, percentiles_us
from drivelab.core.units import format_size
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency, format_mix
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="latency_matrix",
        title="Latency: minimum, mean, maximum, five nines",
        caption=(
            "Latency of each cell in the measurement window: the minimum, the average of the rounds' means, the "
            "maximum, and the latency that 99.999 % of the I/Os do not exceed, from merged histograms. The colours "
            "have a common logarithmic scale. A dash means too few I/Os."
        ),
        tables=("cells", "steady_state", "latency_bins"),
        when=("maximum",),
        place=85,
        rows="loops",
        one_loop=True,
        of_window=True,
    ),
)

_NINES_PCT = 99.999


@style.styled
def latency_matrix(cells: pd.DataFrame, steady_state: pd.DataFrame, latency_bins: pd.DataFrame) -> Figure:
    """Draw tables of latencies: rows by block size, columns by read share, as in the reports of TKperf.

    The tables hold one drive and run. Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, "steady_state")
    selection.require(latency_bins, "latency_bins")
    cells = selection.one_measurement(cells)
    tables = {
        name: selection.window_averages(cells, steady_state, metric)
        for name, metric in (
            ("Minimum", "min_latency_us"),
            ("Mean", "mean_latency_us"),
            ("Maximum", "max_latency_us"),
        )
    }
    columns = cells[["recording", "step"]].drop_duplicates()
    inside = selection.window_rows(latency_bins.merge(columns), steady_state)
    tables[f"{_NINES_PCT:g} %"] = _five_nines(inside, tables["Mean"])
    figure = style.new_figure("Latency by block size and read/write mix")
    values = np.concatenate([table.to_numpy(dtype=float).ravel() for table in tables.values()])
    values = values[np.isfinite(values) & (values > 0)]
    norm = LogNorm(values.min(), max(values.max(), 1.01 * values.min()))
    for axes, (name, table) in zip(figure.subplots(2, 2).flat, tables.items(), strict=True):
        shown = np.ma.masked_invalid(table.to_numpy(dtype=float))
        axes.pcolormesh(shown, norm=norm, cmap="Blues", edgecolors="white", gid="map")
        for (row, column), value in np.ndenumerate(table.to_numpy(dtype=float)):
            dark = np.isfinite(value) and norm(value) > 0.6
            axes.text(column + 0.5, row + 0.5, format_latency(value) if np.isfinite(value) else "\N{EN DASH}",
                      ha="center", va="center", fontsize=style.SMALL_PT, color="white" if dark else "#222222",
                      gid="number")  # fmt: skip
        axes.set_title(name)
        axes.set_xticks(np.arange(len(table.columns)) + 0.5, [selection.mix(column) for column in table.columns])
        axes.set_yticks(np.arange(len(table.index)) + 0.5, [format_size(int(size)) for size in table.index])
        axes.invert_yaxis()
        axes.grid(visible=False)
        axes.set_xlabel("Read/write mix (%)")
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


def _five_nines(bins: pd.DataFrame, like: pd.DataFrame) -> pd.DataFrame:
    """Return five nines of each cell with the axes of `like`; NaN with no I/O above it."""
    table = pd.DataFrame(np.nan, index=like.index, columns=like.columns)
    names = ["block_size_bytes", "pattern", "read_share_pct"]
    several = any(isinstance(column, str) for column in like.columns)
    for (size, pattern, share), part in bins.groupby(names):
        column = f"{selection.access(pattern)} {format_mix(share)}" if several else share
        if has_ios_beyond(float(part["count"].sum()), _NINES_PCT):
            table.loc[size, column] = float(percentiles_us(part, [_NINES_PCT])[0])
    return table
