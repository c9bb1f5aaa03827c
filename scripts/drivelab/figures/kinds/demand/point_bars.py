"""Bars of the points MAX, MID and MIN of a demand sweep."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_number, quantity
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        name="point_bars",
        title="MAX, MID and MIN",
        caption=(
            "I/O rate, mean and maximum latency of the last soak at each point of the sweep: averages over its time, "
            "and the slowest I/O."
        ),
        tables=("cells",),
        when=("points",),
        place=215,
        rows="turns",
    ),
)

_METRICS = ("iops", "mean_latency_us", "max_latency_us")


@style.styled
def point_bars(cells: pd.DataFrame) -> Figure:
    """Draw a panel for each metric, a bar for each point, in the order of the test.

    `cells` holds the soaks of one recording that repeat over points. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    soaks = cells[(cells["kind"] == "soak") & cells["point"].notna()]
    if soaks.empty:
        raise ValueError("table 'cells' has no soaks at points of a sweep")
    last = soaks.groupby("point", sort=False)["step"].max()
    parts = [soaks[soaks["step"] == step] for step in last]
    names = [f"{part['point'].iloc[0].upper()}\n{demand(part['threads'].iloc[0], part['queue_depth'].iloc[0])}"
             for part in parts]  # fmt: skip
    figure = style.new_figure(f"{', '.join(name.partition(chr(10))[0] for name in names)} of the demand sweep")
    for axes, metric in zip(figure.subplots(1, len(_METRICS)), _METRICS, strict=True):
        values = [_value(part, metric) for part in parts]
        scale = quantity(metric, max(values))
        shown = [value / scale.divisor for value in values]
        axes.bar(range(len(names)), shown, 0.62, color=style.colours(1)[0], gid="value")
        for place, value in enumerate(shown):
            axes.annotate(format_number(value), (place, value), (0, 3), textcoords="offset points", ha="center",
                          va="bottom", fontsize=style.SMALL_PT, gid="number")  # fmt: skip
        axes.set_xticks(range(len(names)), names)
        axes.set_ylim(0, max(shown) * 1.15)
        axes.set_ylabel(scale.label)
        axes.grid(visible=False, axis="x")
        ax.plain_numbers(axes, "y")
    return figure


def _value(part: pd.DataFrame, metric: str) -> float:
    """Return the time average of slices, of a latency by I/Os; or the largest maximum."""
    if metric == "max_latency_us":
        return float(part[metric].max())
    weights = part["runtime_s"] if metric == "iops" else part["runtime_s"] * part["iops"]
    return float((part[metric] * weights).sum() / weights.sum())
