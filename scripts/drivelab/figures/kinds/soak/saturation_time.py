"""Write saturation against time."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style, words
from drivelab.figures.base.quantities import Quantity, elapsed, format_number, quantity
from drivelab.figures.kinds.soak import soak_lines
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="saturation_time",
        title="Saturation against time",
        caption=(
            "I/O rate and mean latency of each slice of the soak against time. Where writes began right after a purge, "
            "the first part shows the speed fresh out of the box. Marks are the write cliff, where the I/O "
            "rate falls, and the level that the drive sustains."
        ),
        tables=("cells",),
        when=("soak",),
        place=160,
        rows="soaks",
    ),
)


@style.styled
def saturation_time(cells: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against time, a line per drive and run.

    Each slice has a point at its end, counted from the beginning of the soak. Marks are the write cliff, where the IOPS
    fall, and the level that each line settles at. Raises ValueError for unsuitable tables.
    """
    soak = soak_lines.slices(cells)
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(end_s=soak["elapsed_s"] + soak["runtime_s"] - began)
    time = elapsed(soak["end_s"].max())

    figure, panels = soak_lines.panels(f"IOPS and mean latency against time, {soak['workload'].iloc[0]}")
    for shown, axes in panels.items():
        _draw(axes, soak, shown, time)
        axes.set_xlim(0, soak["end_s"].max() / time.divisor * 1.02 or 1.0)
    axes.set_xlabel(time.label)
    words.time(axes.xaxis, time.divisor, float(soak["elapsed_s"].min()))
    soak_lines.legend(figure, panels.values())
    return figure


def _draw(axes: Axes, soak: pd.DataFrame, metric: str, time: Quantity) -> None:
    scale, alone = quantity(metric, soak[metric].max()), soak["recording"].nunique() == 1
    for number, (_, entry, colour, line) in enumerate(soak_lines.lines(soak, "end_s")):
        soak_lines.plot(axes, line["end_s"] / time.divisor, line[metric] / scale.divisor, colour, number, entry)
        marks = soak_lines.landmarks(line, metric)
        span = float((marks.slices["end_s"] - marks.slices["runtime_s"]).min()), float(marks.slices["end_s"].max())
        soak_lines.mark(axes, marks, (span[0] / time.divisor, span[1] / time.divisor), scale, colour, alone=alone)
        if marks.cliff is not None:
            place = marks.cliff.time_s / time.divisor
            soak_lines.mark_cliff(axes, place, f": after {format_number(place)} {time.unit}", colour, alone=alone)
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric.endswith("_latency_us") and ax.is_wide(values))
