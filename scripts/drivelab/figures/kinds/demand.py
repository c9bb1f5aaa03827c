"""Figures of a sweep over threads and queue depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.path import Path
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from drivelab.core.units import counted
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import Quantity, format_number, quantity
from drivelab.figures.base.words import say
from drivelab.figures.families.lines import OUTSTANDING, QUEUE_DEPTH, RATE, THREADS, Lines, Panel, in_order
from drivelab.figures.families.rows import Across, Rows
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand
from drivelab.tables.labels import demand as demand_name

FIGURES = (
    FigureKind(
        "demand_cpu", "CPU use",
        "System and user CPU time of all threads of the load generator; 100 % is one core. Where the CPU is "
        "saturated, the figure shows the host's limit, not the drive's.",
        when=("demand_cpu",), place=130,
    ),
    FigureKind(
        "demand_outstanding", "Outstanding I/Os",
        "I/O rate and mean latency against all outstanding I/Os (threads times depth), a line for each number of "
        "threads. Where lines coincide, only the number of outstanding I/Os matters. Beyond the knee the latency "
        "grows and the rate does not.",
        when=("demand",), place=110,
    ),
    FigureKind(
        "demand_variation", "Demand variation",
        "I/O rate against queue depth with a line for each number of threads, one panel per workload. Where a line "
        "bends and stays flat the drive is saturated: more I/Os outstanding only wait longer.",
        when=("demand",), place=90,
    ),
    FigureKind(
        "depth_ramp", "Queue-depth ramp",
        "I/O rate and mean latency against queue depth, by threads; of several drives or hosts, against all "
        "outstanding I/Os (threads times depth). Where the rate stops rising and the latency begins to rise, the "
        "drive is saturated: additional I/Os only wait. Lines of one drive that part at the same number of "
        "outstanding I/Os show the limit of a thread, which is the host's.",
        when=("demand", "drives_ramp"), place=120,
    ),
    FigureKind(
        "demand_intensity", "Demand intensity",
        "Mean latency against I/O rate, a line for each number of threads. Points are named by threads and queue "
        "depth (T4Q32). Up to the knee of a line the drive answers quickly. Rings mark the points that the later "
        "steps of the test use, such as MAX, MID and MIN.",
        when=("demand",), place=100,
    ),
    FigureKind(
        "demand_intensity_max", "Demand intensity, maximum latency",
        "Maximum latency against I/O rate, a line for each number of threads. The maximum of a round is a single "
        "I/O; a point averages those of several rounds. Compare rounds before you quote one.",
        when=("demand",), place=101, draw="demand_intensity", options={"metric": "max_latency_us"},
    ),
    FigureKind(
        "demand_intensity_nines", "Demand intensity, 99.999 % latency",
        "Latency that all but one of 100,000 I/Os kept, against I/O rate, a line for each number of threads; a point "
        "averages several rounds. A round of fewer I/Os has its maximum instead.",
        when=("demand",), place=102, draw="demand_intensity", options={"metric": "p99999_latency_us"},
    ),
    FigureKind(
        "point_bars", "MAX, MID and MIN",
        "I/O rate, mean and maximum latency of the last soak at each point of the sweep: averages over its time, and "
        "the slowest I/O.",
        tables=("cells",), when=("points",), place=215, rows="turns",
    ),
)  # fmt: skip

METRICS = ("iops", "mean_latency_us")
_CPU = {"system_cpu_pct": Quantity("System CPU", "% of a core"), "user_cpu_pct": Quantity("User CPU", "% of a core")}


def swept(cells: pd.DataFrame, steady_state: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return columns drive, workload, threads, queue_depth, outstanding and `metrics`, a row for each point of a sweep.

    Workloads measured at a single point, such as the writes before each round, are left out. Runs of a drive are
    averaged. Raises ValueError for unsuitable tables.
    """
    table = overlay.loop_values(cells, steady_state, list(metrics), ["workload", "threads", "queue_depth"])
    table = table[table.groupby(["drive", "workload"])["threads"].transform("size") > 1]
    if table.empty:
        raise ValueError("table 'cells' has no workload at several threads or queue depths")
    table = table.assign(outstanding=table["threads"] * table["queue_depth"])
    return table.sort_values(["threads", "queue_depth"], kind="stable")


def by_threads(cells: pd.DataFrame, steady_state: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return the points of one drive and run, a panel for each workload and a line for each number of threads."""
    selection.one_measurement(cells)
    table = swept(cells, steady_state, metrics)
    return table.assign(panel=table["workload"], line=[counted(count, "thread") for count in table["threads"]])


def _cpu(cells: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return the CPU time of all threads; the columns of `cells` are shares of the time of one thread."""
    table = by_threads(cells, steady_state, ("iops", *_CPU))
    return table.assign(**{column: table[column] * table["threads"] for column in _CPU})


demand_variation = Lines("Demand variation", ("iops",), QUEUE_DEPTH, by_threads, in_order, legend="Threads")
demand_outstanding = Lines(
    "Outstanding I/Os", METRICS, OUTSTANDING, by_threads, in_order, legend="Threads", most=2, stacked=True
)
demand_cpu = Lines(
    "CPU use of the load generator", ("iops", *_CPU), OUTSTANDING, _cpu, in_order, legend="Threads", most=2,
    stacked=True, quantities=_CPU,
)  # fmt: skip


_MOST_LINES = 12
"""With more lines, each number of threads has its own panels."""
_RAMP = Lines("Queue-depth ramp", METRICS, QUEUE_DEPTH, most=4)


@style.styled
def depth_ramp(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw I/O rate (left) and mean latency (right) against queue depth, or threads if only they vary.

    Each row of panels is a workload, with a line per number of threads and drive. With several drives and several
    numbers of threads, the axis shows all outstanding I/Os; with very many, each number of threads has its own panels.
    Runs of a drive are averaged. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "measurement", "cells")
    table = swept(cells, steady_state)
    drives, threads = table["drive"].nunique(), table["threads"].nunique()
    table = table.assign(panel=table["workload"], line=table["drive"])
    ramp, per_thread = _RAMP, [f"{row.workload}, {counted(row.threads, 'thread')}" for row in table.itertuples()]
    if table["queue_depth"].nunique() == 1:
        ramp = replace(ramp, title="Thread ramp", x=THREADS)
    elif drives == 1:
        ramp = replace(ramp, looks=in_order)
        table = table.assign(line=[counted(count, "thread") for count in table["threads"]])
    elif threads > 1 and drives * threads <= _MOST_LINES:
        ramp = replace(ramp, x=OUTSTANDING)
        table = table.assign(line=table["drive"] + ", T" + table["threads"].astype(str))
    elif table.groupby(per_thread)["queue_depth"].nunique().max() > 1:
        table = table.assign(panel=per_thread)
    varied = table.groupby("panel")[ramp.x.column].transform("nunique") > 1
    if not varied.any():
        raise ValueError("table 'cells' has no workload at several threads or queue depths")
    return ramp.draw(table[varied], steady_state)


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
_ROOM_PX = 3.0
"""Room around a name: the panel becomes a little smaller when the figure is labelled."""
_SIDES = {1: ("left", "bottom"), 0: ("center", "center"), -1: ("right", "top")}
"""Alignment of a name on a side of its point: right or above, centred, left or below."""
_PLACES = [
    (far, right, up)
    for far in (1.0, 2.2)
    for right, up in ((1, -1), (-1, 1), (1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1))
]
"""Distances and sides in order of preference, as most lines rise to the right."""


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
    paths = [Path(panel.axes.transData.transform(line[["x", "y"]])) for line in lines.values()]
    ringed = points[points["chosen"].notna()]
    half = _RING_PT / 2 * panel.axes.figure.dpi / 72
    taken = [Bbox([at - half, at + half]) for at in panel.axes.transData.transform(ringed[["x", "y"]])]
    for row in ringed.itertuples():
        _name_point(panel.axes, row, _chosen_name(row), style.ALARM, paths, taken)
    for name, line in lines.items():
        named = line if len(points) <= _MOST_LABELS // panels else line.iloc[[-1]]
        for row in named[named["chosen"].isna()].itertuples():
            _name_point(panel.axes, row, row.words, panel.looks[str(name)].colour, paths, taken)


def _name_point(axes: Axes, point: Any, text: str, colour: Any, paths: Sequence[Path], taken: list[Bbox]) -> None:
    """Write a name beside a point where it covers no other name or point, and as few lines as possible.

    A name without room is left out, unless its point is a chosen one.
    """
    is_chosen = isinstance(point.chosen, str)
    away_pt = 1.5 + (_RING_PT / 2 if is_chosen else 4.0)
    note = axes.annotate(text, (point.x, point.y), (0, 0), textcoords="offset points", color=colour,
                         weight="bold" if is_chosen else "normal", fontsize=style.SMALL_PT,
                         gid="chosen name" if is_chosen else "name")  # fmt: skip

    def cost(place: tuple[float, int, int]) -> float:
        _put(note, away_pt, place)
        box = note.get_window_extent().padded(_ROOM_PX)
        points = sum(box.count_contains(path.vertices) for path in paths)
        outside = not all(axes.bbox.contains(*corner) for corner in box.corners())
        lines = sum(path.intersects_bbox(box, filled=False) for path in paths)
        return 1000.0 * (outside + box.count_overlaps(taken)) + 100.0 * points + 3.0 * (lines + place[0])

    costs = {place: cost(place) for place in _PLACES}
    best = min(costs, key=costs.__getitem__)
    if costs[best] >= 100.0 and not is_chosen:
        note.remove()
        return
    _put(note, away_pt, best)
    taken.append(note.get_window_extent().padded(_ROOM_PX))


def _put(note: Annotation, away_pt: float, place: tuple[float, int, int]) -> None:
    far, right, up = place
    note.set(position=(right * away_pt * far, up * away_pt * far), ha=_SIDES[right][0], va=_SIDES[up][1])


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
    last = [soaks[soaks["step"] == step] for step in soaks.groupby("point", sort=False)["step"].max()]
    names = [str(part["point"].iloc[0]).upper() for part in last]
    marks, across = [], {}
    for metric in _METRICS:
        values = [_value(part, metric) for part in last]
        scale = quantity(metric, max(values))
        across[metric] = Across(scale.label.replace(" (", "\n(", 1))
        marks += [
            {"row": f"{name}\n{demand(part['threads'].iloc[0], part['queue_depth'].iloc[0])}", "panel": metric,
             "value": value / scale.divisor, "number": format_number(value / scale.divisor), "bar": True,
             "colour": style.colours(1)[0]}
            for name, part, value in zip(names, last, values, strict=True)
        ]  # fmt: skip
    return Rows(f"{', '.join(names)} of the demand sweep", across).draw(pd.DataFrame(marks))


def _value(part: pd.DataFrame, metric: str) -> float:
    """Return the time average of slices, of a latency by I/Os; or the largest maximum."""
    if metric == "max_latency_us":
        return float(part[metric].max())
    weights = part["runtime_s"] if metric == "iops" else part["runtime_s"] * part["iops"]
    return float((part[metric] * weights).sum() / weights.sum())
