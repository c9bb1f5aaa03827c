"""Write saturation against time."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures import axes as ax
from drivelab.figures import soak_lines, style
from drivelab.figures.quantities import elapsed, format_number, quantity


@style.styled
def saturation_time(cells: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """`metric` of each slice against the time of its end since the soak began, a line per drive and run.

    Marked are the write cliff, where the IOPS fall off, and what the metric settles at. Raises ValueError for
    unsuitable tables.
    """
    soak = soak_lines.slices(cells, (metric,))
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(end_s=soak["elapsed_s"] + soak["runtime_s"] - began)
    scale, time = quantity(metric, soak[metric].max()), elapsed(soak["end_s"].max())
    name = soak["workload"].iloc[0]
    alone = soak["recording"].nunique() == 1

    figure = style.new_figure(f"{scale.name} against time, {name}")
    axes = figure.subplots()
    for number, (_, entry, colour, line) in enumerate(soak_lines.lines(soak, "end_s")):
        soak_lines.plot(axes, line["end_s"] / time.divisor, line[metric] / scale.divisor, colour, number, entry)
        found = soak_lines.landmarks(line, metric)
        span = float((found.slices["end_s"] - found.slices["runtime_s"]).min()), float(found.slices["end_s"].max())
        soak_lines.mark(axes, found, (span[0] / time.divisor, span[1] / time.divisor), scale, colour, alone=alone)
        if found.cliff is not None:
            place = found.cliff.time_s / time.divisor
            soak_lines.mark_cliff(axes, place, f": after {format_number(place)} {time.unit}", colour, alone=alone)
    axes.set_xlim(0, soak["end_s"].max() / time.divisor * 1.02 or 1.0)
    axes.set_xlabel(time.label)
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric.endswith("_latency_us") and ax.is_wide(values))
    ax.legend(figure, axes)
    return figure
