"""Steady-state convergence: the lines of its figure, and the figure of reads, mixes and writes one above the other."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_mix, quantity
from drivelab.figures.registry import FigureKind
from drivelab.tables import labels
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
_MOST_LINES = 12
_CELL = ["pattern", "block_size_bytes", "read_share_pct"]


@dataclass(frozen=True)
class Lines:
    """Rows of table `cells` with `cell_label`, and a short name for each label, in the order of the legend."""

    rows: pd.DataFrame
    names: dict[str, str]
    title: str
    legend: str
    note: str = ""
    """Says which cells are not shown."""


def beside(loop: pd.DataFrame) -> Lines:
    """Return lines of the cells that a sweep measures at one demand; raises ValueError for none."""
    points = _points(loop)
    rows = loop[loop["workload"].isin(points.index[points == 1])]
    if rows.empty or len(rows) == len(loop):
        raise ValueError("table 'cells' has no sweep with cells of one demand beside it")
    names = list(rows.sort_values("cell")["cell_label"].drop_duplicates())
    return Lines(rows, {name: name for name in names}, "Writes before each round", "Cell")


def choose(loop: pd.DataFrame, tracked: Set[str]) -> Lines:
    """Return lines of a loop's cells: of a grid, those with the fewest reads and the tracked ones."""
    points = _points(loop)
    if points.max() > 2:
        return _sweep(loop, tracked, points)
    if not _is_grid(loop):
        return _all(loop, tracked)
    share = int(loop["read_share_pct"].min())
    rows = selection.rows(loop, "cells", read_share_pct=share).sort_values(["pattern", "block_size_bytes"])
    prefix = rows["pattern"].nunique() > 1
    names = {
        row.cell_label: f"{selection.access(row.pattern)} " * prefix + format_size(int(row.block_size_bytes))
        for row in rows.drop_duplicates("cell_label").itertuples()
    }
    others = loop[loop["cell_label"].isin(tracked - names.keys())]
    names |= {
        row.cell_label: f"{format_size(int(row.block_size_bytes))} {format_mix(int(row.read_share_pct))}"
        for row in others.sort_values("cell").drop_duplicates("cell_label").itertuples()
    }
    title = f"Convergence at {format_mix(share)} read/write"
    return Lines(
        pd.concat([rows, others]), names, f"{title}, and of tracked cells" if len(others) else title, "Block size"
    )


def _points(loop: pd.DataFrame) -> pd.Series:
    """Return the number of demands of each workload."""
    return loop.groupby("workload")[["threads", "queue_depth"]].apply(lambda part: len(part.drop_duplicates()))


def _is_grid(loop: pd.DataFrame) -> bool:
    """Return whether the cells are all combinations of block sizes and mixes, each once."""
    cells = loop.drop_duplicates("cell_label")
    if not all(
        row.workload == labels.workload(row.pattern, row.block_size_bytes, row.read_share_pct)
        for row in cells[["workload", *_CELL]].itertuples()
        if row.pattern in ("random", "sequential")
    ) or not cells["pattern"].isin(["random", "sequential"]).all():  # fmt: skip
        return False
    pure = set(cells["read_share_pct"]) == {0, 100}
    several = cells["block_size_bytes"].nunique() > 1 or len(cells) == 1 or pure
    return several and len(cells) == cells[_CELL].nunique().prod()


def _all(loop: pd.DataFrame, tracked: Set[str]) -> Lines:
    names = list(loop.sort_values("cell")["cell_label"].drop_duplicates())
    shown = sorted(names, key=lambda name: (name not in tracked, names.index(name)))[:_MOST_LINES]
    left_out = len(names) - len(shown)
    return Lines(
        loop[loop["cell_label"].isin(shown)],
        {name: name for name in names if name in shown},
        "Convergence",
        "Cell",
        f"{len(shown)} of {len(names)} cells are shown, including the tracked ones" if left_out else "",
    )


def _sweep(loop: pd.DataFrame, tracked: Set[str], points: pd.Series) -> Lines:
    """Return lines of the cells with the most threads of the tracked workload, else of the one with the most points."""
    followed = loop[loop["cell_label"].isin(tracked)]["workload"]
    workload = str(followed.iloc[0] if len(followed) else points.idxmax())
    of_workload = loop[loop["workload"] == workload]
    threads = int(of_workload["threads"].max())
    rows = of_workload[of_workload["threads"] == threads].sort_values("queue_depth")
    names = {
        row.cell_label: labels.demand(threads, int(row.queue_depth))
        for row in rows.drop_duplicates("cell_label").itertuples()
    }
    return Lines(rows, names, f"Convergence at {threads} thread{'' if threads == 1 else 's'}, {workload}",
                 "Demand")  # fmt: skip


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
