"""Queue-depth ramps: I/O rate and latency against queue depth, for one or several drives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.kinds.demand import demand
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="depth_ramp",
        title="Queue-depth ramp",
        caption=(
            "I/O rate and mean latency against queue depth, by threads; of several drives or hosts, against all "
            "outstanding I/Os (threads times depth). Where the rate stops rising and the latency begins to rise, "
            "the drive is saturated: additional I/Os only wait. Lines of one drive that part at the same number "
            "of outstanding I/Os show the limit of a thread, which is the host's."
        ),
        tables=("cells", "steady_state"),
        when=("demand", "drives_ramp"),
        place=120,
    ),
)

_MOST_PANELS = 4
_MOST_LINES = 12
"""With more lines, each number of threads has its own panels."""
_NAMES = {
    "queue_depth": "Queue depth per thread\n(number), log scale",
    "threads": "Threads (number), log scale",
    "outstanding": "All outstanding I/Os\n(number), log scale",
}
_MOST_TICKS = 6


@style.styled
def depth_ramp(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw I/O rate (left) and mean latency (right) against queue depth, or threads if only they vary.

    Each row of panels is a workload, with a line per number of threads and drive. With several drives and several
    numbers of threads, the axis shows all outstanding I/Os; with very many, each number of threads has its own panels.
    Runs of a drive are averaged. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "measurement", "cells")
    table = _points(cells, steady_state)
    axis = "queue_depth" if table["queue_depth"].nunique() > 1 else "threads"
    several = table["drive"].nunique() > 1
    lines = table["drive"].nunique() * table["threads"].nunique()
    if several and axis == "queue_depth" and table["threads"].nunique() > 1 and lines <= _MOST_LINES:
        axis = "outstanding"
    by = ["workload", "threads"] if several and axis == "queue_depth" else ["workload"]
    groups = _sweeps(table, by, axis) or _sweeps(table, ["workload"], axis)
    if not groups:
        raise ValueError("table 'cells' has no workload at several threads or queue depths")
    shown = _spread(groups, _MOST_PANELS)
    height_in = 4.2 if len(shown) == 1 else 1.3 + 2.1 * len(shown)
    figure = style.new_figure(f"{'Thread' if axis == 'threads' else 'Queue-depth'} ramp", height_in=height_in)
    words = f"each point: {counted.what(steady_state)}"
    if len(shown) < len(groups):
        words += f"; {len(shown)} of {len(groups)} sweeps, all are in the tables"
    style.note(figure, words)
    overlay.note_coinciding(figure, table, ["workload", "threads", "queue_depth"], demand.METRICS)
    panels = figure.subplots(len(shown), 2, squeeze=False)
    metrics = list(demand.METRICS)
    for row, (key, part) in zip(panels, shown, strict=True):
        for axes, metric in zip(row, metrics, strict=True):
            _panel(axes, part, metric, axis, list(_lines(table, part, axis, several)))
        row[0].set_title(_title(key), fontsize=style.SMALL_PT, loc="left")
    for axes in panels[-1]:
        axes.set_xlabel(_NAMES[axis])
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, panels[0][0])
    return figure


def _points(cells: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return columns drive, workload, threads, queue_depth and the metrics of each point, runs averaged."""
    parts = [
        demand.surface(part, steady_state[steady_state["recording"] == recording]).assign(drive=part["drive"].iloc[0])
        for recording, part in cells.groupby("recording", sort=False)
    ]
    key = ["drive", "workload", "threads", "queue_depth"]
    table = pd.concat(parts).groupby(key, sort=False, as_index=False)[list(demand.METRICS)].mean()
    return table.assign(outstanding=table["threads"] * table["queue_depth"])


def _sweeps(table: pd.DataFrame, by: list[str], axis: str) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Return key and points of each group in which the column `axis` varies."""
    groups = [(tuple(key), part) for key, part in table.groupby(by, sort=False)]
    return [(key, part) for key, part in groups if part[axis].nunique() > 1]


def _spread(groups: list[Any], most: int) -> list[Any]:
    """Return all groups, or `most` of them, evenly spread from first to last."""
    if len(groups) <= most:
        return groups
    return [groups[round(place * (len(groups) - 1) / (most - 1))] for place in range(most)]


def _lines(table: pd.DataFrame, part: pd.DataFrame, axis: str, several: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the points and the style of each line."""
    if axis == "outstanding":
        threads = sorted(int(count) for count in table["threads"].unique())
        for drive, look in overlay.looks(table["drive"]).items():
            for place, count in enumerate(threads):
                line = part[(part["drive"] == drive) & (part["threads"] == count)].sort_values(axis)
                how = {"color": look.colour, "marker": style.MARKERS[place], "linestyle": style.DASHES[place % 4],
                       "label": f"{drive}, T{count}", "gid": "line"}  # fmt: skip
                yield line, how
    elif several:
        for drive, look in overlay.looks(table["drive"]).items():
            how = {"color": look.colour, "marker": look.marker, "linestyle": look.dash, "label": drive, "gid": "line"}
            yield part[part["drive"] == drive].sort_values(axis), how
    elif axis == "queue_depth":
        yield from demand.lines(table, part)
    else:
        yield part.sort_values(axis), {"color": style.colours(1)[0], "marker": "o", "gid": "line",
                                       "label": part["drive"].iloc[0]}  # fmt: skip


def _panel(axes: Axes, part: pd.DataFrame, metric: str, axis: str, lines: list[Any]) -> None:
    scale = quantity(metric, float(part[metric].max()))
    for line, how in lines:
        axes.plot(line[axis], line[metric] / scale.divisor, **how)
    values = [float(value) for value in part[metric] / scale.divisor]
    log = ax.is_wide(values)
    ax.scale_y(axes, values, scale, log=log)
    axes.set_ylabel(f"{scale.name}\n({scale.unit}){', log scale' if log else ''}")  # a panel is too low for one line
    places = sorted(int(place) for place in part[axis].unique())
    apart = max(1.3, 0.999 * (places[-1] / places[0]) ** (1 / _MOST_TICKS))
    ax.binary_axis(axes, places, "{:g}".format, room=1.3, apart=apart)


def _title(key: tuple[Any, ...]) -> str:
    if len(key) == 1:
        return str(key[0])
    return f"{key[0]}, {key[1]} thread{'' if key[1] == 1 else 's'}"
