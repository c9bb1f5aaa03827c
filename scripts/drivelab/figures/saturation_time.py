"""Write saturation against time."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures import axes as ax
from drivelab.figures import soak_lines, style
from drivelab.figures.quantities import elapsed, quantity


@style.styled
def saturation_time(cells: pd.DataFrame, *, metric: str = "iops", cliff_s: Mapping[str, float] | None = None) -> Figure:
    """`metric` of each slice against the time of its end since the soak began, a line per drive and run.

    `cliff_s` gives, for each drive, the time at which its rate falls off. Raises ValueError for unsuitable tables.
    """
    soak = soak_lines.slices(cells, ("elapsed_s", "runtime_s", metric))
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(end_s=soak["elapsed_s"] + soak["runtime_s"] - began)
    scale, time = quantity(metric, soak[metric].max()), elapsed(soak["end_s"].max())
    name = soak["workload"].iloc[0]

    figure = style.new_figure(f"{scale.name} against time, {name}")
    axes = figure.subplots()
    colour_of = {}
    for number, (drive, entry, colour, line) in enumerate(soak_lines.lines(soak, "end_s")):
        colour_of[drive] = colour
        soak_lines.plot(axes, line["end_s"] / time.divisor, line[metric] / scale.divisor, colour, number, entry)
    soak_lines.mark_cliffs(axes, {drive: at / time.divisor for drive, at in (cliff_s or {}).items()}, colour_of)
    axes.set_xlim(0, soak["end_s"].max() / time.divisor * 1.02 or 1.0)
    axes.set_xlabel(time.label)
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric == "max_latency_us" and ax.is_wide(values))
    ax.legend(figure, axes, "Drive")
    return figure
