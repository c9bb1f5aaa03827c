"""Strip chart: the soaks of all drives second by second, aligned at their starts."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style
from drivelab.figures.kinds.drives import strip_lines
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="strip_chart",
        title="Strip chart",
        caption=(
            "Each second of the soaks of all drives, aligned at their starts; the drives were measured one "
            "after another. Bold lines are rolling means."
        ),
        tables=("series", "cells"),
        when=("drives_strip",),
        place=420,
    ),
)

_PLACE = ["recording", "step", "round", "cell"]


@style.styled
def strip_chart(series: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the I/O rate per second of the soaks, a line per drive and run, panels by direction.

    Soaks of different workloads show bandwidth. Time begins with the first second of the
    first soak; soaks in phases are left out. Long lines are pale, with their rolling mean on top. Raises ValueError for
    unsuitable tables.
    """
    selection.require(cells, "cells")
    selection.require_one(series, "measurement", "series")
    soaks = series[(series["kind"] == "soak") & series["phase"].isna()]
    rows = soaks.merge(cells[[*_PLACE, "elapsed_s"]].drop_duplicates(_PLACE), on=_PLACE, how="inner")
    if rows.empty:
        raise ValueError("table 'series' has no seconds of the soaks in table 'cells'")
    began = rows.groupby("recording")["elapsed_s"].transform("min")
    rows = rows.assign(at_s=rows["elapsed_s"] - began + rows["time_s"])
    workloads = list(rows["workload"].drop_duplicates())
    title = f"Strip chart, {workloads[0]}" if len(workloads) == 1 else "Strip chart"
    metric = "iops" if len(workloads) == 1 else "bandwidth_mib_s"
    figure = strip_lines.draw(rows, title, metric, "the first soak began")
    if len(workloads) > 1:
        style.note(figure, f"one after another: {', '.join(workloads)}")
    return figure
