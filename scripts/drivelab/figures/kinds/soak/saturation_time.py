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
            "I/O rate and mean latency of every slice of the soak against time. On a drive that was purged "
            "and not filled the first part is its speed fresh out of the box. Marked are the write cliff, "
            "where the I/O rate falls off, and what each settles at: where the curve ends level is what the "
            "drive can keep up."
        ),
        tables=("cells",),
        status="cells",
        when=("soak",),
        place=160,
        rows="soaks",
    ),
)


@style.styled
def saturation_time(cells: pd.DataFrame, *, metric: str | None = None) -> Figure:
    """I/O rate and mean latency of each slice, one above the other, or `metric` alone, against the time of its end
    since the soak began, a line per drive and run.

    Marked are the write cliff, where the IOPS fall off, and what each settles at. Raises ValueError for unsuitable
    tables.
    """
    soak = soak_lines.slices(cells, (metric,) if metric else soak_lines.PANELS)
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(end_s=soak["elapsed_s"] + soak["runtime_s"] - began)
    time = elapsed(soak["end_s"].max())

    what = quantity(metric, soak[metric].max()).name if metric else "IOPS and mean latency"
    figure = style.new_figure(
        f"{what} against time, {soak['workload'].iloc[0]}", height_in=soak_lines.height_in(metric)
    )
    panels = soak_lines.panels(figure, metric)
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
        found = soak_lines.landmarks(line, metric)
        span = float((found.slices["end_s"] - found.slices["runtime_s"]).min()), float(found.slices["end_s"].max())
        soak_lines.mark(axes, found, (span[0] / time.divisor, span[1] / time.divisor), scale, colour, alone=alone)
        if found.cliff is not None:
            place = found.cliff.time_s / time.divisor
            soak_lines.mark_cliff(axes, place, f": after {format_number(place)} {time.unit}", colour, alone=alone)
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric.endswith("_latency_us") and ax.is_wide(values))
