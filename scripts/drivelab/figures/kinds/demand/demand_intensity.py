"""Demand intensity: mean latency against I/O rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.names_beside import Names
from drivelab.figures.base.words import say
from drivelab.figures.families.lines import RATE, Lines, Panel, in_order
from drivelab.figures.kinds.demand.demand import by_threads
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
    table = by_threads(cells, steady_state, ("iops", metric))
    table["words"] = [demand_name(row.threads, row.queue_depth) for row in table.itertuples()]
    table["chosen"] = _chosen(cells, table)
    panels: list[Panel] = []

    def rings(panel: Panel) -> Sequence[Artist]:
        panels.append(panel)
        if not _rate_limits(panel.axes, panel.points["iops"].tolist()):
            panel.axes.set_xlabel(f"{panel.axes.get_xlabel()}, not from 0")
        ringed = panel.points[panel.points["chosen"].notna()]
        if ringed.empty:
            return ()
        (drawn,) = panel.axes.plot(
            ringed["iops"], panel.shown(ringed), marker="o", markersize=_RING_PT, markerfacecolor="none",
            markeredgecolor=style.ALARM, markeredgewidth=1.6, linestyle="none", clip_on=False, label="chosen point",
            gid="chosen",
        )  # fmt: skip
        say(drawn, [_chosen_name(row) for row in ringed.itertuples()])
        return (drawn,)

    figure = Lines(
        _TITLES[metric], (metric,), RATE, looks=in_order, legend="Threads", row_in=3.0, marks=rings,
        note="TxQy: x threads with y I/Os outstanding each",
    ).draw(table, steady_state)  # fmt: skip
    engine = figure.get_layout_engine()
    assert engine is not None  # as `style.new_figure` makes them
    engine.execute(figure)  # names are placed by the position of the axes
    for panel in panels:
        _name_points(panel, len(panels))
    return figure


def _name_points(panel: Panel, panels: int) -> None:
    """Name the chosen points, then the other points, or only line ends, where there is room."""
    points = panel.points.assign(x=panel.points["iops"], y=panel.shown(panel.points))
    lines = dict(list(points.groupby("line", sort=False)))
    ringed = points[points["chosen"].notna()]
    names = Names(panel.axes, [line[["x", "y"]].to_numpy() for line in lines.values()])
    names.keep_clear(ringed[["x", "y"]].to_numpy(), _RING_PT)
    for row in ringed.itertuples():
        names.add(row.x, row.y, _chosen_name(row), style.ALARM, gid="chosen name", ring_pt=_RING_PT)
    for name, line in lines.items():
        named = line if len(points) <= _MOST_LABELS // panels else line.iloc[[-1]]
        for row in named[named["chosen"].isna()].itertuples():
            names.add(row.x, row.y, row.words, panel.looks[str(name)].colour, gid="name")


def _chosen_name(row: Any) -> str:
    return f"{row.chosen} {row.words}"


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
