"""Steady-state convergence: a metric against the round, a line per block size or cell."""

from __future__ import annotations

from copy import copy

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import quantity, short_name
from drivelab.figures.kinds.loop.convergence_lines import WINDOW, beside, choose
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        name="convergence",
        title="Steady-state convergence",
        caption=(
            "Value of each round: for each block size at one R/W mix, and for each tracked cell; in a demand "
            "sweep, for each queue depth at the greatest number of threads; in other tests, for each cell. The marked "
            "rounds are the measurement window, the last five. The test is steady if the tracked variables keep their "
            "limits there."
        ),
        tables=("cells", "steady_state"),
        when=("one_mix",),
        place=10,
        rows="loops",
        one_loop=True,
    ),
    FigureKind(
        name="round_history",
        title="Round by round",
        caption=(
            "Value of each round of a test with a fixed number of rounds. It shows how good the steady state is that "
            "a short window would have found."
        ),
        tables=("cells", "steady_state"),
        when=("history",),
        place=10,
        rows="loops",
        options={"metric": "iops", "history": True},
    ),
    FigureKind(
        name="convergence_max",
        title="Steady-state convergence, maximum latency",
        caption=(
            "Maximum latency of each round, for each block size at one R/W mix. A maximum is a single I/O, "
            "so it settles less than the mean, which determines the marked window."
        ),
        tables=("cells", "steady_state"),
        when=("maximum",),
        place=70,
        rows="loops",
        one_loop=True,
        options={"metric": "max_latency_us"},
    ),
    FigureKind(
        name="pre_writes",
        title="Writes before each round",
        caption=(
            "Writes before the sweep of each round, which keep the drive in steady state. If they drift "
            "between the marked rounds, all later values of the round drift too."
        ),
        tables=("cells", "steady_state"),
        when=("pre_writes",),
        place=140,
        rows="loops",
        one_loop=True,
        options={"beside_sweep": True},
    ),
)


@style.styled
def convergence(
    cells: pd.DataFrame,
    steady_state: pd.DataFrame,
    *,
    metric: str | None = None,
    beside_sweep: bool = False,
    history: bool = False,
) -> Figure:
    """Draw the convergence of all block sizes at one read share, with the steady-state window.

    `cells` and `steady_state` hold one drive and run. By default the cells with the fewest reads and all tracked cells
    are shown. If cells are not a grid of block sizes and mixes, all are shown. For a sweep, the tracked workload with
    the most threads is shown, or with `beside_sweep` the cells at one demand only, such as the writes before each
    round. `metric` is a column of `cells`, by default the tracked one. Filled markers are in the window, hollow ones
    outside; a `history` has no window, and `steady_state` may be empty. Raises ValueError for unsuitable tables.
    """
    if history:
        steady_state = steady_state.iloc[:0]
    else:
        selection.require(steady_state, "steady_state")
    if metric is None:
        metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, "cells")
    loop = selection.one_measurement(named(cells))
    tracked_metrics = set(steady_state["metric"])
    tracked = set(steady_state[steady_state["metric"] == metric]["variable"])
    lines = beside(loop) if beside_sweep else choose(loop, tracked)
    shown = lines.rows
    windows = selection.windows(steady_state)
    scale = quantity(metric, shown[metric].max())

    is_told = history or metric in tracked_metrics
    figure = style.new_figure(lines.title if is_told else f"{lines.title}, {short_name(metric)}")
    axes = figure.subplots()
    all_inside = True
    for colour, marker, (label, short) in zip(
        style.ordered_colours(len(lines.names)), style.MARKERS * 9, lines.names.items(), strict=False
    ):
        is_tracked = label in tracked
        name: str | None = short + (" *" if is_tracked else "")
        for (recording, step), line in shown[shown["cell_label"] == label].groupby(["recording", "step"]):
            line = line.sort_values("round")
            values = line[metric] / scale.divisor
            axes.plot(
                line["round"],
                values,
                color=colour,
                marker=marker,
                markerfacecolor="white",
                label=name,
                linewidth=2.6 if is_tracked else 1.4,
                gid="line",
            )
            name = None
            start, end = windows.get((recording, step), (0, -1))
            inside = line["round"].between(start, end) | history
            all_inside &= bool(inside.all())
            axes.plot(
                line["round"][inside], values[inside], color=colour, marker=marker, linestyle="none", gid="window"
            )
    if lines.note:
        style.note(figure, lines.note)
    _mark(axes, shown, scale.divisor, metric)
    message = selection.not_steady(steady_state)
    if len(set(windows.values())) == 1:
        start, end = next(iter(windows.values()))
        axes.axvspan(
            start - 0.5,
            end + 0.5,
            color=style.ALARM if message else WINDOW,
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
    title = lines.legend + ("\n(* tracked)" if tracked & set(lines.names) else "")
    outside = None if all_inside else "not the last" if message else "outside window"
    ax.legend(figure, axes, title, _handles(axes, outside))
    return figure


def _handles(axes: Axes, outside: str | None) -> list[Artist]:
    """Return the legend entries: lines with filled markers, and hollow dots if there are any."""
    handles: list[Artist] = []
    for handle in axes.get_legend_handles_labels()[0]:
        if isinstance(handle, Line2D) and handle.get_gid() == "line":
            filled = copy(handle)
            filled.set(markerfacecolor=handle.get_color())
            handle = filled
        handles.append(handle)
    if outside:
        handles.append(Line2D([], [], color=style.MUTED, marker="o", markerfacecolor="white", linestyle="none",
                              label=outside))  # fmt: skip
    return handles


def _mark(axes: Axes, shown: pd.DataFrame, divisor: float, metric: str) -> None:
    """Mark tainted and host-limited cells and rounds after a gap, which make a curve less trustworthy."""
    tainted = shown["tainted"].eq(True) if "tainted" in shown else []
    limited = shown["host_limit"].notna() if "host_limit" in shown else []
    for rows, label, marker in ((tainted, "tainted", "o"), (limited, "host-limited", "s")):
        flagged = shown[rows]
        if not flagged.empty:
            axes.plot(
                flagged["round"],
                flagged[metric] / divisor,
                linestyle="none",
                marker=marker,
                markersize=10,
                markerfacecolor="none",
                markeredgecolor=style.ALARM,
                label=label,
                gid=label,
            )
    name: str | None = "after a gap"
    for number in sorted(shown["round"][shown["after_gap"].fillna(False).astype(bool)].unique()):
        axes.axvline(number - 0.5, color=style.MUTED, linestyle=":", label=name, gid="gap")
        name = None
