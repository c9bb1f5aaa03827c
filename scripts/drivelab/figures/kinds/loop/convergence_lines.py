"""Steady-state convergence: the lines of its figure, and the figure of reads, mixes and writes one above the other."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_mix
from drivelab.figures.families import lines as family
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
WINDOW = "#2a7f3f"
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


@style.styled
def convergence_mixes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric against the round, a panel for each share of reads and a line for each block size.

    `cells` and `steady_state` hold one drive and run. Raises ValueError for unsuitable tables.
    """
    metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    selection.require(cells, "cells")
    loop = selection.one_measurement(named(cells)).sort_values(["read_share_pct", "block_size_bytes", "round"])
    windows = set(selection.windows(steady_state).values())

    def window(panel: family.Panel) -> Sequence[Artist]:
        if len(windows) == 1:
            start, end = next(iter(windows))
            panel.axes.axvspan(start - 0.5, end + 0.5, color=WINDOW, alpha=0.12, linewidth=0, zorder=0, gid="span")
        return ()

    table = loop.assign(
        panel=[f"{format_mix(share)} read/write" for share in loop["read_share_pct"]],
        line=[format_size(size) for size in loop["block_size_bytes"]],
        tracked=loop["cell_label"].isin(set(steady_state["variable"])),
    )
    return family.Lines(
        "Convergence of writes, mixes and reads", (metric,), family.ROUND, looks=family.in_order, columns=1,
        same_x=True, most=4, legend="Block size (thick: tracked)", marks=window,
    ).draw(table, steady_state)  # fmt: skip
