"""Demand intensity: mean latency against I/O rate."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, style
from drivelab.figures.base.names_beside import Names
from drivelab.figures.base.quantities import quantity
from drivelab.figures.base.words import say
from drivelab.figures.kinds.demand import demand
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand as demand_name

FIGURES = (
    FigureKind(
        name="demand_intensity",
        title="Demand intensity",
        caption=(
            "Mean latency against I/O rate, a line for each number of threads. Points are named by threads "
            "and queue depth (T4Q32). Up to the knee of a line the drive answers quickly. Rings mark the "
            "points that the later steps of the test use, such as MAX, MID and MIN."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=100,
    ),
    FigureKind(
        name="demand_intensity_max",
        title="Demand intensity, maximum latency",
        caption=(
            "Maximum latency against I/O rate, a line for each number of threads. The maximum of a round is a single "
            "I/O; a point averages those of several rounds. Compare rounds before you quote one."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=101,
        options={"metric": "max_latency_us"},
    ),
    FigureKind(
        name="demand_intensity_nines",
        title="Demand intensity, 99.999 % latency",
        caption=(
            "Latency that all but one of 100,000 I/Os kept, against I/O rate, a line for each number of threads; a "
            "point averages several rounds. A round of fewer I/Os has its maximum instead."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=102,
        options={"metric": "p99999_latency_us"},
    ),
)

_TITLES = {
    "mean_latency_us": "Demand intensity",
    "max_latency_us": "Demand intensity, maximum latency",
    "p99999_latency_us": "Demand intensity, 99.999 % latency",
}
_MOST_LABELS = 16
"""With more points, only the ends of the lines are named."""
_ALIKE = 0.97
"""If all rates are above this share of the highest, the axis does not begin at 0, which would merge their dots.
All other axes begin at 0, so that small differences do not look large."""
_RING_PT = 13.0


@style.styled
def demand_intensity(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "mean_latency_us") -> Figure:
    """Draw a latency over IOPS, by default the mean, a line per number of threads, points labelled as `T4Q32`.

    Rings mark the points that later steps use (MAX, MID, MIN). `cells` holds one drive and run with its soaks;
    `steady_state` may be empty. Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state, ("iops", metric))
    rate = quantity("iops", float(table["iops"].max()))
    time = quantity(metric, float(table[metric].max()))
    table = table.assign(x=table["iops"] / rate.divisor, y=table[metric] / time.divisor)
    table["chosen"] = _chosen(cells, table)
    figure, axes_of = demand.panels(_TITLES[metric], table, height_in=3.0)
    style.note(figure, f"each point: {counted.what(steady_state)}, TxQy: x threads with y I/Os outstanding each")
    parts = {name: table[table["workload"] == name] for name in axes_of}
    for name, axes in axes_of.items():
        part = parts[name]
        for line, look in demand.lines(table, part):
            (points,) = axes.plot(line["x"], line["y"], **look)
            say(points, [demand_name(row.threads, row.queue_depth) for row in line.itertuples()])
        ringed = part[part["chosen"].notna()]
        if len(ringed):
            (rings,) = axes.plot(ringed["x"], ringed["y"], marker="o", markersize=_RING_PT, markerfacecolor="none",
                                 markeredgecolor=style.ALARM, markeredgewidth=1.6, linestyle="none", clip_on=False,
                                 label="chosen point", gid="chosen")  # fmt: skip
            say(rings, [_chosen_name(row) for row in ringed.itertuples()])
        values = part["y"].tolist()
        ax.scale_y(axes, values, time, log=ax.is_wide(values))
        from_0 = _rate_limits(axes, part["x"].tolist())
        ax.plain_numbers(axes, "x")
        axes.set_xlabel(rate.label + ("" if from_0 else ", not from 0"))
    demand.finish(figure, next(iter(axes_of.values())), steady_state)
    engine = figure.get_layout_engine()
    assert engine is not None  # as `style.new_figure` makes them
    engine.execute(figure)  # names are placed by the position of the axes
    for name, axes in axes_of.items():
        _name_points(axes, table, parts[name], len(axes_of))
    return figure


def _name_points(axes: Axes, table: pd.DataFrame, part: pd.DataFrame, panels: int) -> None:
    """Name the chosen points of `part`, then the other points, or only line ends, where there is room."""
    lines = [(line, look["color"]) for line, look in demand.lines(table, part) if len(line)]
    ringed = part[part["chosen"].notna()]
    names = Names(axes, [line[["x", "y"]].to_numpy() for line, _ in lines])
    names.keep_clear(ringed[["x", "y"]].to_numpy(), _RING_PT)
    for row in ringed.itertuples():
        names.add(row.x, row.y, _chosen_name(row), style.ALARM, gid="chosen name", ring_pt=_RING_PT)
    for line, colour in lines:
        named = line if len(part) <= _MOST_LABELS // panels else line.iloc[[-1]]
        for row in named[named["chosen"].isna()].itertuples():
            names.add(row.x, row.y, demand_name(row.threads, row.queue_depth), colour, gid="name")


def _chosen_name(row: Any) -> str:
    return f"{row.chosen} {demand_name(row.threads, row.queue_depth)}"


def _rate_limits(axes: Axes, rates: list[float]) -> bool:
    """Limit the x axis and return whether it begins at 0; it does not if all rates are nearly equal."""
    low, high = min(rates), max(rates)
    if low < _ALIKE * high:
        axes.set_xlim(0, high * 1.3)  # most names are on the right
        return True
    room = 0.3 * (high - low) or 0.1 * high
    axes.set_xlim(low - 2 * room, high + room)
    return False


def _chosen(cells: pd.DataFrame, table: pd.DataFrame) -> list[str | None]:
    """Return the names (MAX, MID, MIN) of each row of `table`, or None; one row can have several names."""
    points = cells[cells["point"].notna()]
    names: dict[tuple[int, int], list[str]] = {}
    for row in points.drop_duplicates("point").itertuples():
        names.setdefault((row.threads, row.queue_depth), []).append(str(row.point).upper())
    workloads = set(points["workload"])
    return [
        " = ".join(names.get((row.threads, row.queue_depth), ())) or None if row.workload in workloads else None
        for row in table.itertuples()
    ]
