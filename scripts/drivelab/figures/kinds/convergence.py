"""Steady-state convergence: a metric against the round, a line for each block size, demand or cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.core.units import counted, format_size
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_mix, short_name
from drivelab.figures.families.lines import ROUND, Lines, Panel, in_order
from drivelab.figures.registry import FigureKind
from drivelab.tables import labels
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        "convergence_mixes", "Steady-state convergence, writes above reads",
        "Value of each round, a line for each block size and a panel for each R/W mix, writes on top. The shaded "
        "rounds are the measurement window, which the tracked variables determine.",
        when=("by_mix",), place=60, rows="loops", one_loop=True,
    ),
    FigureKind(
        "convergence", "Steady-state convergence",
        "Value of each round: for each block size at one R/W mix, and for each tracked cell; in a demand sweep, for "
        "each queue depth at the greatest number of threads; in other tests, for each cell. The marked rounds are "
        "the measurement window, the last five. The test is steady if the tracked variables keep their limits there.",
        when=("one_mix",), place=10, rows="loops", one_loop=True,
    ),
    FigureKind(
        "round_history", "Round by round",
        "Value of each round of a test with a fixed number of rounds. It shows how good the steady state is that a "
        "short window would have found.",
        when=("history",), place=10, rows="loops", draw="convergence", options={"metric": "iops", "history": True},
    ),
    FigureKind(
        "convergence_max", "Steady-state convergence, maximum latency",
        "Maximum latency of each round, for each block size at one R/W mix. A maximum is a single I/O, so it settles "
        "less than the mean, which determines the marked window.",
        when=("maximum",), place=70, rows="loops", one_loop=True, draw="convergence",
        options={"metric": "max_latency_us"},
    ),
    FigureKind(
        "pre_writes", "Writes before each round",
        "Writes before the sweep of each round, which keep the drive in steady state. If they drift between the "
        "marked rounds, all later values of the round drift too.",
        when=("pre_writes",), place=140, rows="loops", one_loop=True, draw="convergence",
        options={"beside_sweep": True},
    ),
)  # fmt: skip

WINDOW = "#2a7f3f"
_MOST_LINES = 12
_CELL = ["pattern", "block_size_bytes", "read_share_pct"]


@dataclass(frozen=True)
class Chosen:
    """Rows of table `cells` with `cell_label`, and a short name for each label, in the order of the legend."""

    rows: pd.DataFrame
    names: dict[str, str]
    title: str
    legend: str
    note: str = ""
    """Says which cells are not shown."""


def _chosen(
    rows: pd.DataFrame, title: str, legend: str, name: Callable[[Any], str] = lambda row: row.cell_label, note: str = ""
) -> Chosen:
    """Return lines of `rows` in their order, each called by `name`."""
    names = {row.cell_label: name(row) for row in rows.drop_duplicates("cell_label").itertuples()}
    return Chosen(rows, names, title, legend, note)


def beside(loop: pd.DataFrame) -> Chosen:
    """Return lines of the cells that a sweep measures at one demand; raises ValueError for none."""
    points = _points(loop)
    rows = loop[loop["workload"].isin(points.index[points == 1])]
    if rows.empty or len(rows) == len(loop):
        raise ValueError("table 'cells' has no sweep with cells of one demand beside it")
    return _chosen(rows.sort_values("cell"), "Writes before each round", "Cell")


def choose(loop: pd.DataFrame, tracked: Set[str]) -> Chosen:
    """Return lines of a loop's cells: of a grid, those with the fewest reads and the tracked ones."""
    points = _points(loop)
    if points.max() > 2:
        return _sweep(loop, tracked, points)
    if not _is_grid(loop):
        return _all(loop, tracked)
    share = int(loop["read_share_pct"].min())
    rows = selection.rows(loop, "cells", read_share_pct=share).sort_values(["pattern", "block_size_bytes"])
    others = loop[loop["cell_label"].isin(tracked - set(rows["cell_label"]))].sort_values("cell")
    prefix = rows["pattern"].nunique() > 1

    def name(row: Any) -> str:
        size = format_size(int(row.block_size_bytes))
        if row.read_share_pct != share:
            return f"{size} {format_mix(int(row.read_share_pct))}"
        return f"{selection.access(row.pattern)} {size}" if prefix else size

    title = f"Convergence at {format_mix(share)} read/write{', and of tracked cells' if len(others) else ''}"
    return _chosen(pd.concat([rows, others]), title, "Block size", name)


def _points(loop: pd.DataFrame) -> pd.Series:
    """Return the number of demands of each workload."""
    return loop.drop_duplicates(["workload", "threads", "queue_depth"]).groupby("workload").size()


def _is_grid(loop: pd.DataFrame) -> bool:
    """Return whether the cells are all combinations of block sizes and mixes, each once."""
    cells = loop.drop_duplicates("cell_label")
    if not cells["pattern"].isin(["random", "sequential"]).all():
        return False
    plain = [labels.workload(*cell) for cell in cells[_CELL].itertuples(index=False)]
    pure = set(cells["read_share_pct"]) == {0, 100}
    several = cells["block_size_bytes"].nunique() > 1 or len(cells) == 1 or pure
    return list(cells["workload"]) == plain and several and len(cells) == cells[_CELL].nunique().prod()


def _all(loop: pd.DataFrame, tracked: Set[str]) -> Chosen:
    names = list(loop.sort_values("cell")["cell_label"].drop_duplicates())
    shown = sorted(names, key=lambda name: (name not in tracked, names.index(name)))[:_MOST_LINES]
    left_out = len(shown) < len(names)
    note = f"{len(shown)} of {len(names)} cells are shown, including the tracked ones" if left_out else ""
    return _chosen(
        loop[loop["cell_label"].isin(shown)].sort_values("cell", kind="stable"), "Convergence", "Cell", note=note
    )


def _sweep(loop: pd.DataFrame, tracked: Set[str], points: pd.Series) -> Chosen:
    """Return lines of the cells with the most threads of the tracked workload, else of the one with the most points."""
    followed = loop[loop["cell_label"].isin(tracked)]["workload"]
    of_workload = loop[loop["workload"] == str(followed.iloc[0] if len(followed) else points.idxmax())]
    threads = int(of_workload["threads"].max())
    rows = of_workload[of_workload["threads"] == threads].sort_values("queue_depth")
    title = f"Convergence at {counted(threads, 'thread')}, {rows['workload'].iloc[0]}"
    return _chosen(rows, title, "Demand", lambda row: labels.demand(threads, int(row.queue_depth)))


@style.styled
def convergence_mixes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric against the round, a panel for each share of reads and a line for each block size.

    `cells` and `steady_state` hold one drive and run. Raises ValueError for unsuitable tables.
    """
    metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, "cells")
    loop = selection.one_measurement(named(cells)).sort_values(["read_share_pct", "block_size_bytes", "round"])
    windows = set(selection.windows(steady_state).values())

    def window(panel: Panel) -> Sequence[Artist]:
        if len(windows) == 1:
            start, end = next(iter(windows))
            panel.axes.axvspan(start - 0.5, end + 0.5, color=WINDOW, alpha=0.12, linewidth=0, zorder=0, gid="span")
        return ()

    table = loop.assign(
        panel=[f"{format_mix(share)} read/write" for share in loop["read_share_pct"]],
        line=[format_size(size) for size in loop["block_size_bytes"]],
        tracked=loop["cell_label"].isin(set(steady_state["variable"])),
    )
    return Lines(
        "Convergence of writes, mixes and reads", (metric,), ROUND, looks=in_order, columns=1,
        same_x=True, most=4, legend="Block size (thick: tracked)", marks=window,
    ).draw(table, steady_state)  # fmt: skip


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
                        markerfacecolor="white", label=line, gid="outside")  # fmt: skip
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
