"""Queue-depth ramps: I/O rate and latency against queue depth, for one or several drives."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style
from drivelab.figures.families.lines import OUTSTANDING, QUEUE_DEPTH, THREADS, Lines, in_order
from drivelab.figures.kinds.demand.demand import METRICS, in_words, swept
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="depth_ramp",
        title="Queue-depth ramp",
        caption=(
            "I/O rate and mean latency against queue depth, by threads; of several drives or hosts, against all "
            "outstanding I/Os (threads times depth). Where the rate stops rising and the latency begins to rise, "
            "the drive is saturated: additional I/Os only wait. Lines of one drive that part at the same number "
            "of outstanding I/Os show the limit of a thread, which is the host's."
        ),
        tables=("cells", "steady_state"),
        when=("demand", "drives_ramp"),
        place=120,
    ),
)

_MOST_LINES = 12
"""With more lines, each number of threads has its own panels."""
_RAMP = Lines("Queue-depth ramp", METRICS, QUEUE_DEPTH, most=4)


@style.styled
def depth_ramp(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw I/O rate (left) and mean latency (right) against queue depth, or threads if only they vary.

    Each row of panels is a workload, with a line per number of threads and drive. With several drives and several
    numbers of threads, the axis shows all outstanding I/Os; with very many, each number of threads has its own panels.
    Runs of a drive are averaged. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "measurement", "cells")
    table = swept(cells, steady_state)
    drives, threads = table["drive"].nunique(), table["threads"].nunique()
    table = table.assign(panel=table["workload"], line=table["drive"])
    ramp, per_thread = _RAMP, [f"{row.workload}, {in_words(row.threads)}" for row in table.itertuples()]
    if table["queue_depth"].nunique() == 1:
        ramp = replace(ramp, title="Thread ramp", x=THREADS)
    elif drives == 1:
        ramp = replace(ramp, looks=in_order)
        table = table.assign(line=[in_words(count) for count in table["threads"]])
    elif threads > 1 and drives * threads <= _MOST_LINES:
        ramp = replace(ramp, x=OUTSTANDING)
        table = table.assign(line=table["drive"] + ", T" + table["threads"].astype(str))
    elif table.groupby(per_thread)["queue_depth"].nunique().max() > 1:
        table = table.assign(panel=per_thread)
    varied = table.groupby("panel")[ramp.x.column].transform("nunique") > 1
    if not varied.any():
        raise ValueError("table 'cells' has no workload at several threads or queue depths")
    return ramp.draw(table[varied], steady_state)
