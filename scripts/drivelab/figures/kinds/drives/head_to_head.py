"""Head to head: I/O rate per second of drives measured at the same time."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import selection, style
from drivelab.figures.kinds.drives import strip_lines
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="head_to_head",
        title="Head to head",
        caption=(
            "I/O rate of all drives in each second, measured at the same time and counted from their common "
            "start. If one falls while another rises, they share a resource: the host, a bus, a power supply."
        ),
        tables=("series", "cells"),
        when=("head_to_head",),
        place=430,
    ),
)

_PLACE = ["recording", "step", "round", "cell"]


@style.styled
def head_to_head(series: pd.DataFrame, cells: pd.DataFrame) -> Figure:
    """Draw the I/O rate per second on one clock, a line per drive and run, separate panels by direction.

    The clock of a run begins with the first drive. Each virtual drive has its own virtual clock; those are aligned at
    their starts, and a note says so. Raises ValueError for unsuitable tables.
    """
    selection.require(cells, "cells")
    selection.require_one(series, "measurement", "series")
    places = cells[[*_PLACE, "started"]].drop_duplicates(_PLACE)
    rows = series.merge(places, on=_PLACE, how="inner")
    if rows.empty:
        raise ValueError("table 'series' has no seconds of the cells in table 'cells'")
    at_s = rows["started"].astype("int64") / _ticks_per_s(rows["started"]) + rows["time_s"]
    own_clocks = bool((rows["clock"] == "virtual").any())
    began = (at_s - rows["time_s"]).groupby(rows["recording"] if own_clocks else rows["run"]).transform("min")
    rows = rows.assign(at_s=at_s - began)
    figure = strip_lines.draw(rows, "Head to head: I/O rate second by second", "iops", "the common start")
    if own_clocks:
        style.note(figure, "virtual clock: each drive has its own clock; the starts are aligned")
    return figure


def _ticks_per_s(times: pd.Series) -> float:
    """Return the number of ticks per second of a column of time stamps."""
    return {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}[times.dt.unit]
