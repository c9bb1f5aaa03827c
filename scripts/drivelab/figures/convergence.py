"""Steady-state convergence: a metric against the round, a line per block size."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures import axes as ax
from drivelab.figures import selection, style
from drivelab.figures.quantities import format_mix, quantity
from drivelab.units import format_size

_CELLS = (
    "recording",
    "drive",
    "protocol",
    "measurement",
    "run",
    "step",
    "kind",
    "round",
    "pattern",
    "read_share_pct",
    "block_size_bytes",
    "after_gap",
    "tainted",
)
_STEADY = (
    "recording",
    "step",
    "variable",
    "metric",
    "reached",
    "rounds",
    "window_start",
    "window_end",
    *selection.EXCURSIONS,
)


@style.styled
def convergence(
    cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str | None = None, read_share_pct: int | None = None
) -> Figure:
    """Convergence of all block sizes at one read share, with the steady-state window marked.

    `cells` and `steady_state` hold one drive and run. Without `read_share_pct` writes are shown, or the cells with the
    fewest reads where there is none that only writes. `metric` is a column of `cells`; without it, the one that the
    protocol tracks. Filled markers lie in the window, hollow ones outside. Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, _STEADY, "steady_state")
    if metric is None:
        metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, (*_CELLS, metric), "cells")
    loop = selection.one_measurement(cells)
    if read_share_pct is None:
        read_share_pct = int(loop["read_share_pct"].min())
    shown = selection.rows(loop, "cells", read_share_pct=read_share_pct)
    windows = selection.windows(steady_state)
    scale = quantity(metric, shown[metric].max())

    figure = style.new_figure(f"Convergence at {format_mix(read_share_pct)} read/write")
    axes = figure.subplots()
    several = shown["pattern"].nunique() > 1
    kinds = sorted(shown[["pattern", "block_size_bytes"]].drop_duplicates().itertuples(index=False, name=None))
    for colour, marker, (pattern, size) in zip(
        style.ordered_colours(len(kinds)), style.MARKERS * 9, kinds, strict=False
    ):
        tracked = _is_tracked(steady_state, metric, pattern, size, read_share_pct)
        access = f"{selection.access(pattern)} " if several else ""
        name: str | None = access + format_size(int(size)) + (" *" if tracked else "")
        of_kind = shown[(shown["pattern"] == pattern) & (shown["block_size_bytes"] == size)]
        for (recording, step), line in of_kind.groupby(["recording", "step"]):
            line = line.sort_values("round")
            values = line[metric] / scale.divisor
            axes.plot(
                line["round"],
                values,
                color=colour,
                marker=marker,
                markerfacecolor="white",
                label=name,
                linewidth=2.6 if tracked else 1.4,
                gid="line",
            )
            name = None
            start, end = windows.get((recording, step), (0, -1))
            inside = line["round"].between(start, end)
            axes.plot(
                line["round"][inside], values[inside], color=colour, marker=marker, linestyle="none", gid="window"
            )
    _mark(axes, shown, scale.divisor, metric)
    message = selection.not_steady(steady_state)
    if len(set(windows.values())) == 1:
        start, end = next(iter(windows.values()))
        axes.axvspan(
            start - 0.5,
            end + 0.5,
            color=style.ALARM if message else "#2a7f3f",
            alpha=0.12,
            linewidth=0,
            label="last rounds" if message else "window",
            zorder=0,
            gid="span",
        )
    values = (shown[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    ax.round_axis(axes, int(shown["round"].min()), int(shown["round"].max()))
    if message:
        style.alarm(figure, message)
    ax.legend(figure, axes, "Block size\n(* tracked)")
    return figure


def _is_tracked(steady_state: pd.DataFrame, metric: str, pattern: str, size: int, read_share_pct: int) -> bool:
    variable = selection.workload(pattern, size, read_share_pct)
    return variable in set(steady_state[steady_state["metric"] == metric]["variable"])


def _mark(axes: Axes, shown: pd.DataFrame, divisor: float, metric: str) -> None:
    """Tainted cells and rounds after a gap change how far a curve can be trusted."""
    tainted = shown[shown["tainted"].fillna(False).astype(bool)]
    if not tainted.empty:
        axes.plot(
            tainted["round"],
            tainted[metric] / divisor,
            linestyle="none",
            marker="o",
            markersize=10,
            markerfacecolor="none",
            markeredgecolor=style.ALARM,
            label="tainted",
            gid="tainted",
        )
    name: str | None = "after a gap"
    for number in sorted(shown["round"][shown["after_gap"].fillna(False).astype(bool)].unique()):
        axes.axvline(number - 0.5, color=style.MUTED, linestyle=":", label=name, gid="gap")
        name = None
