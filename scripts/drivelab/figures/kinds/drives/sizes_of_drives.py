"""Block sizes of separate measurements, each after its own purge and fill, for all drives."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import format_mix, metric_name
from drivelab.figures.families.lines import BLOCK_SIZE, Lines
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="sizes_of_drives",
        title="By block size",
        caption=(
            'Reads and writes of each drive by block size, after "TP 2D" of the PTS throughput test. Each '
            "block size is a separate measurement after a purge and a fill. Where the line is flat, the "
            "block size does not matter."
        ),
        tables=("cells", "steady_state"),
        when=("sizes",),
        place=440,
        of_window=True,
    ),
    FigureKind(
        name="grid_of_drives",
        title="By block size, each mix",
        caption=(
            "Each drive by block size, a panel for each mix of reads and writes, all with one scale. A point is the "
            "average over the steady-state window of its drive."
        ),
        tables=("cells", "steady_state"),
        when=("drives_grid",),
        place=345,
        of_window=True,
        one_loop=True,
    ),
)

_KEY = ["pattern", "read_share_pct", "block_size_bytes"]
_PURE = {100: ", reads", 0: ", writes"}


@style.styled
def sizes_of_drives(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric of the loops against block size, panels for reads and writes.

    Each drive has a line; its runs are averaged. After "TP 2D" of the PTS throughput test, which measures each block
    size separately. Raises ValueError for unsuitable tables, and for loops that track different metrics.
    """
    selection.require(cells, "cells")
    metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    loop = selection.rows(cells, "cells", kind="loop")
    several = loop["measurement"].nunique() > 1
    table = pd.concat(
        overlay.loop_values(part, steady_state[steady_state["measurement"] == measurement], [metric], _KEY)
        for measurement, part in loop.groupby("measurement", sort=False)
    )
    order = table["drive"].map(list(overlay.looks(table["drive"])).index)
    table = table.assign(line=table["drive"], order=order)
    table = table.sort_values(["order", *_KEY], ascending=[True, True, False, True])
    panel = [f"{selection.access(row.pattern)} {format_mix(row.read_share_pct)}{_PURE.get(row.read_share_pct, '')}"
             for row in table.itertuples()]  # fmt: skip
    return Lines(
        f"{metric_name(metric)} by block size", (metric,), BLOCK_SIZE, columns=3, same_y=True,
        note="of a separate measurement each" if several else "",
    ).draw(table.assign(panel=panel), steady_state)  # fmt: skip
