"""Bandwidth against the position on a drive, from its outer to its inner zone."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import quantity
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
    by = ["workload", "threads", "queue_depth", "range_start", "range_share"]
    table = overlay.loop_values(cells, steady_state, ["bandwidth_mib_s"], by)
    table["workload"] = table["workload"].str.replace(_POSITION, "", regex=True)
    table["position_pct"] = 100 * (table["range_start"] + table["range_share"] / 2)
    loads = [(key, part) for key, part in table.groupby(["workload", "threads", "queue_depth"], sort=False)]
    loads = [(key, part) for key, part in loads if part["position_pct"].nunique() >= 3]
    if not loads:
        raise ValueError("table 'cells' has no workload at three or more positions")
    looks = overlay.looks(table["drive"])
    scale = quantity("bandwidth_mib_s", float(table["bandwidth_mib_s"].max()))
    figure = style.new_figure("Bandwidth by position")
    style.note(figure, f"each point: {counted.what(steady_state)}")
    axes = figure.subplots()
    colours = style.colours(len(loads))
    for place, ((workload, _, _), load) in enumerate(loads):
        for drive, part in load.groupby("drive", sort=False):
            look, line = looks[str(drive)], part.sort_values("position_pct")
            name = f"{drive}, {workload}" if len(looks) > 1 else str(workload)
            axes.plot(line["position_pct"], line["bandwidth_mib_s"] / scale.divisor,
                      color=look.colour if len(looks) > 1 else colours[place], marker=style.MARKERS[place],
                      linestyle=style.DASHES[place % 4], label=name, gid="line")  # fmt: skip
    ax.scale_y(axes, [float(value) / scale.divisor for value in table["bandwidth_mib_s"]], scale)
    axes.set_xlim(0, 100)
    axes.set_xlabel("Position (% of the capacity)")
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, axes)
    return figure
