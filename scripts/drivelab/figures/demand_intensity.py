"""Demand intensity: the mean latency against the I/O rate that goes with it."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.labels import demand as demand_name
from drivelab.figures import axes as ax
from drivelab.figures import counted, demand, style
from drivelab.figures.quantities import quantity

_MOST_LABELS = 16
"""More points than this are named at the ends of the lines only."""
_ALIKE = 0.6
_NAME_PX = (48, 16)
"""Room that the name of a point takes."""


@style.styled
def demand_intensity(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Mean latency over IOPS of each point of a sweep, a line per number of threads, points labelled as `T4Q32`.

    Points that the recording went on with (MAX, MID, MIN) are ringed. `cells` holds one drive and run with its soaks;
    `steady_state` may be empty. Raises ValueError for unsuitable tables.
    """
    table = demand.surface(cells, steady_state)
    rate = quantity("iops", float(table["iops"].max()))
    time = quantity("mean_latency_us", float(table["mean_latency_us"].max()))
    chosen = _chosen(cells)
    figure, axes_of = demand.panels("Demand intensity", table, height_in=3.0)
    style.note(figure, f"each point: {counted.what(steady_state)}, TxQy: x threads with y I/Os outstanding each")
    for name, axes in axes_of.items():
        part = table[table["workload"] == name]
        for line, look in demand.lines(table, part):
            axes.plot(line["iops"] / rate.divisor, line["mean_latency_us"] / time.divisor, **look)
        values = [float(one) for one in part["mean_latency_us"] / time.divisor]
        ax.scale_y(axes, values, time, log=ax.is_wide(values))
        _rate_limits(axes, [float(one) / rate.divisor for one in part["iops"]])
        ax.plain_numbers(axes, "x")
        axes.set_xlabel(rate.label)
        ringed = chosen if name in _of_points(cells) else {}
        taken = _ring(axes, part, ringed, rate.divisor, time.divisor)
        for line, look in demand.lines(table, part):
            named = line if len(part) <= _MOST_LABELS // len(axes_of) else line.iloc[[-1]]
            for row in named.itertuples():
                place = row.iops / rate.divisor, row.mean_latency_us / time.divisor
                if _is_free(axes, place, taken):
                    _name(axes, *place, demand_name(int(row.threads), int(row.queue_depth)), look["color"])
                    taken.append(place)
    demand.finish(figure, next(iter(axes_of.values())), steady_state)
    return figure


def _rate_limits(axes: Axes, rates: list[float]) -> None:
    """From 0 as a rule; where all rates are alike, as of a drive that is busy from the start, around them."""
    low, high = min(rates), max(rates)
    if low < _ALIKE * high:
        axes.set_xlim(0, high * 1.12)
    else:
        room = 0.3 * (high - low) or 0.1 * high
        axes.set_xlim(low - 2 * room, high + room)


def _of_points(cells: pd.DataFrame) -> set[str]:
    return set(cells["workload"][cells["point"].notna()])


def _chosen(cells: pd.DataFrame) -> dict[tuple[int, int], str]:
    """Names of the points by threads and depth; one combination may be several of them."""
    found: dict[tuple[int, int], str] = {}
    points = cells[cells["point"].notna()].drop_duplicates("point")
    for row in points.itertuples():
        place = int(row.threads), int(row.queue_depth)
        found[place] = " = ".join([*([found[place]] if place in found else []), str(row.point).upper()])
    return found


def _is_free(axes: Axes, place: tuple[float, float], taken: list[tuple[float, float]]) -> bool:
    """Whether the name of a point there covers no other; the names are as they lie before the layout is known."""
    x, y = axes.transData.transform(place)
    others = [axes.transData.transform(other) for other in taken]
    return all(abs(x - other_x) > _NAME_PX[0] or abs(y - other_y) > _NAME_PX[1] for other_x, other_y in others)


def _ring(
    axes: Axes, part: pd.DataFrame, chosen: dict[tuple[int, int], str], per_rate: float, per_time: float
) -> list[tuple[float, float]]:
    """Ring and name the chosen points; returns their places."""
    legend: str | None = "chosen point"
    places: list[tuple[float, float]] = []
    for row in part.itertuples():
        name = chosen.get((int(row.threads), int(row.queue_depth)))
        if name is None:
            continue
        x, y = row.iops / per_rate, row.mean_latency_us / per_time
        axes.plot(x, y, marker="o", markersize=13, markerfacecolor="none", markeredgecolor=style.ALARM,
                  markeredgewidth=1.6, linestyle="none", clip_on=False, label=legend,
                  gid="chosen")  # fmt: skip
        legend = None
        places.append((x, y))
        text = f"{name} {demand_name(int(row.threads), int(row.queue_depth))}"
        least = "MIN" in name  # the others come from the left, it may stand at the very left
        axes.annotate(text, (x, y), (10, 0) if least else (-9, 7), textcoords="offset points",
                      ha="left" if least else "right", va="center" if least else "bottom", color=style.ALARM,
                      weight="bold", fontsize=style.SMALL_PT, gid="chosen name")  # fmt: skip
    return places


def _name(axes: Axes, x: float, y: float, text: str, colour: style.Colour) -> None:
    axes.annotate(text, (x, y), (5, -4), textcoords="offset points", ha="left", va="top", color=colour,
                  fontsize=style.SMALL_PT, gid="name")  # fmt: skip
