"""Figures of a sweep over threads and queue depths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from drivelab.core.units import counted
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import Quantity, short_name
from drivelab.figures.families.lines import OUTSTANDING, RATE, Lines, Panel, by_drive, in_order
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        "depth_ramp", "Queue-depth ramp",
        "I/O rate and mean latency against all outstanding I/Os (threads times depth), by threads and drive; of one "
        "drive also the CPU time of the load generator (100 % is one core). Beyond the knee the latency grows and the "
        "rate does not: the drive is saturated, and additional I/Os only wait. Lines of one drive that part show the "
        "limit of a thread or a CPU, which is the host's.",
        when=("demand", "drives_ramp"), place=110,
    ),
    FigureKind(
        "demand_intensity", "Demand intensity",
        "Mean latency against I/O rate, a line for each number of threads and a point for each queue depth. Up to the "
        "knee of a line the drive answers quickly. Hollow marks are the points that the later steps of the test use, "
        "such as MAX, MID and MIN.",
        when=("demand",), place=100,
    ),
    FigureKind(
        "demand_intensity_max", "Demand intensity, maximum latency",
        "Maximum latency against I/O rate, a line for each number of threads. The maximum of a round is a single "
        "I/O; a point averages those of several rounds. Compare rounds before you quote one.",
        when=("demand",), place=101, draw="demand_intensity", options={"metric": "max_latency_us"},
    ),
)  # fmt: skip

METRICS = ("iops", "mean_latency_us")
_DEMAND = ["workload", "threads", "queue_depth"]
_CPU = {"system_cpu_pct": Quantity("System CPU", "% of a core"), "user_cpu_pct": Quantity("User CPU", "% of a core")}


def swept(cells: pd.DataFrame, steady_state: pd.DataFrame, metrics: Sequence[str] = METRICS) -> pd.DataFrame:
    """Return columns drive, workload, threads, queue_depth, outstanding, words, `metrics`, a row for each point.

    Workloads measured at a single point, such as the writes before each round, are left out. Runs of a drive are
    averaged.
    """
    table = overlay.loop_values(cells, steady_state, list(metrics), _DEMAND)
    table = table[table.groupby(["drive", "workload"])["threads"].transform("size") > 1]
    if table.empty:
        raise ValueError("table 'cells' has no workload at several threads or queue depths")
    words = [demand(*point) for point in zip(table["threads"], table["queue_depth"], strict=True)]
    table = table.assign(outstanding=table["threads"] * table["queue_depth"], words=words)
    return table.sort_values(["threads", "queue_depth"], kind="stable")


_MOST_LINES = 12
"""With more lines, each number of threads has its own panels."""


def depth_ramp(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against all outstanding I/Os, a panel for each workload, runs averaged.

    The CPU time is of all threads, and only of one drive; on the virtual clock, I/Os need no CPU.
    """
    selection.require_one(cells, "measurement", "cells")
    alone = cells["drive"].nunique() == 1
    metrics = (*METRICS, *_CPU) if alone and (cells["clock"] == "wall").all() else METRICS
    table = swept(cells, steady_state, metrics)
    table = table.assign(**{column: table[column] * table["threads"] for column in _CPU if column in metrics})
    threads = [counted(count, "thread") for count in table["threads"]]
    by_threads = table["threads"].nunique() > 1 and table["queue_depth"].nunique() > 1
    table = table.assign(panel=table["workload"], line=table["drive"])
    if by_threads and alone:
        table = table.assign(line=threads)
    elif by_threads and len(table[["drive", "threads"]].drop_duplicates()) <= _MOST_LINES:
        table = table.assign(line=table["drive"] + ", T" + table["threads"].astype(str))
    elif by_threads:
        table = table.assign(panel=table["workload"] + ", " + threads)
    varied = table.groupby("panel")["outstanding"].transform("nunique") > 1
    return Lines(
        "Queue-depth ramp", metrics, OUTSTANDING, looks=in_order if alone else by_drive,
        legend="Threads" if alone else "Drive", most=4, stacked=True, row_in=1.8, quantities=_CPU,
    ).draw(table[varied], steady_state)  # fmt: skip


_CHOSEN_PT = 12.0
_ALIKE = 0.97
"""If all rates are above this share of the highest, the axis does not begin at 0, which would merge their dots.
All other axes begin at 0, so that small differences do not look large."""


def demand_intensity(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "mean_latency_us") -> Figure:
    """Draw a latency over IOPS, by default the mean, a line per number of threads with a point per queue depth.

    Hollow marks are the points that later steps use (MAX, MID, MIN). `cells` holds one drive and run with its soaks;
    `steady_state` may be empty.
    """
    selection.one_measurement(cells)
    table = swept(cells, steady_state, ("iops", metric))
    table = table.assign(panel=table["workload"], line=[counted(count, "thread") for count in table["threads"]])
    points = cells[cells["point"].notna()].drop_duplicates("point")
    alike = bool(table["iops"].min() >= _ALIKE * table["iops"].max())

    def chosen(panel: Panel) -> Sequence[Artist]:
        if not alike:
            panel.axes.set_xlim(left=0)
        marks = []
        for place, point in enumerate(points.itertuples()):
            of_point = (panel.points[_DEMAND] == [getattr(point, column) for column in _DEMAND]).all(axis=1)
            for row in panel.points[of_point].itertuples():
                name = f"{str(point.point).upper()} {row.words}"
                marks += panel.axes.plot(
                    row.iops, getattr(row, metric) / panel.scale.divisor, linestyle="none", label=name, gid="chosen",
                    marker=style.MARKERS[place], markersize=_CHOSEN_PT + 2 * place, markerfacecolor="none",
                    markeredgecolor=style.ALARM, markeredgewidth=1.6, clip_on=False,
                )  # fmt: skip
        return marks

    depths = ", ".join(f"{depth:g}" for depth in sorted(table["queue_depth"].unique()))
    title = "Demand intensity" if metric == "mean_latency_us" else f"Demand intensity, {short_name(metric)}"
    return Lines(
        title, (metric,), replace(RATE, label=f"{RATE.label}, not from 0") if alike else RATE, looks=in_order,
        legend="Threads", row_in=3.0, marks=chosen,
        note=f"points of a line, in order: {depths} I/Os outstanding per thread; TxQy: x threads with y each",
    ).draw(table, steady_state)  # fmt: skip
