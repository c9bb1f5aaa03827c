"""Steady-state convergence: a metric against the round, a line per block size or cell."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import short_name
from drivelab.figures.families.lines import ROUND, Lines, Panel, in_order
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
    tracked = set(steady_state[steady_state["metric"] == metric]["variable"])
    lines = beside(loop) if beside_sweep else choose(loop, tracked)
    windows, message = selection.windows(steady_state), selection.not_steady(steady_state)
    names = {label: short + (" *" if label in tracked else "") for label, short in lines.names.items()}
    ends = [windows.get(step, (0, -1)) for step in zip(lines.rows["recording"], lines.rows["step"], strict=True)]
    table = lines.rows.assign(
        line=lines.rows["cell_label"].map(names),
        order=lines.rows["cell_label"].map(list(names).index),
        tracked=lines.rows["cell_label"].isin(tracked),
        part=lines.rows["recording"] + lines.rows["step"].astype(str),
        inside=[history or start <= number <= end
                for number, (start, end) in zip(lines.rows["round"], ends, strict=True)],
    ).sort_values(["order", "recording", "step", "round"])  # fmt: skip

    def marks(panel: Panel) -> Sequence[Artist]:
        entries = _flags(panel)
        if len(set(windows.values())) == 1:
            start, end = next(iter(windows.values()))
            entries.append(panel.axes.axvspan(
                start - 0.5, end + 0.5, color=style.ALARM if message else WINDOW, alpha=0.12, linewidth=0,
                label="last rounds" if message else "window", zorder=0, gid="span",
            ))  # fmt: skip
        return [*entries, *_hollow(panel, "not the last" if message else "outside window")]

    is_told = history or metric in set(steady_state["metric"])
    return Lines(
        lines.title if is_told else f"{lines.title}, {short_name(metric)}", (metric,), ROUND, looks=in_order,
        legend=lines.legend + ("\n(* tracked)" if tracked & names.keys() else ""), note=lines.note, marks=marks,
    ).draw(table, steady_state)  # fmt: skip


def _hollow(panel: Panel, name: str) -> list[Artist]:
    """Draw hollow markers outside the window; return their legend entry, if there are any."""
    outside = panel.points[~panel.points["inside"]]
    for line, part in outside.groupby("line", sort=False):
        look = panel.looks[str(line)]
        panel.axes.plot(part["round"], panel.shown(part), color=look.colour, marker=look.marker, linestyle="none",
                        markerfacecolor="white", gid="outside")  # fmt: skip
    hollow = Line2D([], [], color=style.MUTED, marker="o", markerfacecolor="white", linestyle="none", label=name)
    return [] if outside.empty else [hollow]


def _flags(panel: Panel) -> list[Artist]:
    """Mark tainted and host-limited cells and rounds after a gap, which make a curve less trustworthy."""
    points, entries = panel.points, list[Artist]()
    tainted = points["tainted"].eq(True) if "tainted" in points else []
    limited = points["host_limit"].notna() if "host_limit" in points else []
    for rows, label, marker in ((tainted, "tainted", "o"), (limited, "host-limited", "s")):
        flagged = points[rows]
        if not flagged.empty:
            entries += panel.axes.plot(
                flagged["round"], panel.shown(flagged), linestyle="none", marker=marker, markersize=10,
                markerfacecolor="none", markeredgecolor=style.ALARM, label=label, gid=label,
            )  # fmt: skip
    for number in sorted(points["round"][points["after_gap"].fillna(False).astype(bool)].unique()):
        entries.append(panel.axes.axvline(number - 0.5, color=style.MUTED, linestyle=":", label="after a gap",
                                          gid="gap"))  # fmt: skip
    return entries
