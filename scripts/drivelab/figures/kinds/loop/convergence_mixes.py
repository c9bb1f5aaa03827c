"""Steady-state convergence of reads, mixes and writes, one above the other."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_mix, quantity
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        name="convergence_mixes",
        title="Steady-state convergence, writes above reads",
        caption=(
            "Value of each round, a line for each block size and a panel for each R/W mix, writes on top. The "
            "shaded rounds are the measurement window, which the tracked variables determine."
        ),
        tables=("cells", "steady_state"),
        when=("by_mix",),
        place=60,
        rows="loops",
        one_loop=True,
    ),
)

_MOST_PANELS = 4


@style.styled
def convergence_mixes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric against the round, a panel for each share of reads and a line for each block size.

    `cells` and `steady_state` hold one drive and run. With many shares, the first ones from writes to reads are shown.
    Raises ValueError for unsuitable tables.
    """
    metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, "cells")
    loop = selection.one_measurement(named(cells))
    shares = sorted(int(share) for share in loop["read_share_pct"].unique())
    shown = shares[:_MOST_PANELS]
    sizes = sorted(int(size) for size in loop["block_size_bytes"].unique())
    tracked = set(steady_state["variable"])
    figure = style.new_figure("Convergence of writes, mixes and reads", height_in=1.2 + 2.0 * len(shown))
    if len(shown) < len(shares):
        style.note(figure, f"{len(shown)} of {len(shares)} mixes; all are in the tables")
    panels = figure.subplots(len(shown), 1, squeeze=False, sharex=True)[:, 0]
    scale = quantity(metric, float(loop[metric].max()))
    windows = set(selection.windows(steady_state).values())
    for axes, share in zip(panels, shown, strict=True):
        part = loop[loop["read_share_pct"] == share]
        for size, colour, marker in zip(sizes, style.ordered_colours(len(sizes)), style.MARKERS * 9, strict=False):
            line = part[part["block_size_bytes"] == size].sort_values("round")
            is_tracked = bool(tracked & set(line["cell_label"]))
            axes.plot(line["round"], line[metric] / scale.divisor, color=colour, marker=marker, gid="line",
                      linewidth=2.6 if is_tracked else 1.4, label=format_size(size))  # fmt: skip
        if len(windows) == 1:
            start, end = next(iter(windows))
            axes.axvspan(start - 0.5, end + 0.5, color="#2a7f3f", alpha=0.12, linewidth=0, zorder=0, gid="span")
        values = (part[metric] / scale.divisor).dropna().tolist()
        log = ax.is_wide(values)
        ax.scale_y(axes, values, scale, log=log)
        axes.set_ylabel(f"{scale.name}\n({scale.unit}){', log' if log else ''}")
        axes.set_title(f"{format_mix(share)} read/write", fontsize=style.SMALL_PT, loc="left")
    ax.round_axis(panels[-1], int(loop["round"].min()), int(loop["round"].max()))
    figure.align_ylabels(panels)
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, panels[0], "Block size (thick: tracked)")
    return figure
