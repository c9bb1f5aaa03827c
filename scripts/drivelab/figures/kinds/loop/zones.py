"""Bandwidth against the position on a drive, from its outer to its inner zone."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import overlay, style
from drivelab.figures.families.lines import POSITION, Lines, apart, by_drive
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="zones",
        title="Bandwidth by position",
        caption=(
            "Bandwidth at positions over the capacity. The outer tracks of a hard disk, where its addresses begin, "
            "hold more than the inner ones, so its curve falls. A flash drive has a level line."
        ),
        tables=("cells", "steady_state"),
        when=("zones", "drives_zones"),
        place=305,
    ),
)

_POSITION = r", from [^,]*"
"""Part of a workload's name in which cells at different positions differ."""


@style.styled
def zones(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the bandwidth over the middle of each active range, a line for each workload and drive.

    Runs of a drive are averaged. Raises ValueError for unsuitable tables and fewer than three positions.
    """
    load = ["workload", "threads", "queue_depth"]
    table = overlay.loop_values(cells, steady_state, ["bandwidth_mib_s"], [*load, "range_start", "range_share"])
    table["workload"] = table["workload"].str.replace(_POSITION, "", regex=True)
    table["position_pct"] = 100 * (table["range_start"] + table["range_share"] / 2)
    table = table[table.groupby(load)["position_pct"].transform("nunique") >= 3].sort_values("position_pct")
    if table.empty:
        raise ValueError("table 'cells' has no workload at three or more positions")
    several = table["drive"].nunique() > 1
    line = table["drive"] + ", " + table["workload"] if several else table["workload"]
    looks = by_drive if several else apart
    shown = Lines("Bandwidth by position", ("bandwidth_mib_s",), POSITION, looks=looks, linear=("bandwidth_mib_s",))
    return shown.draw(table.assign(line=line), steady_state)
