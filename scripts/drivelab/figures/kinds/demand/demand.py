"""Figures of a sweep over threads and queue depths, and the points of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from drivelab.figures.base import overlay, selection
from drivelab.figures.base.quantities import Quantity
from drivelab.figures.families.lines import OUTSTANDING, QUEUE_DEPTH, Lines, in_order
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="demand_cpu",
        title="CPU use",
        caption=(
            "System and user CPU time of all threads of the load generator; 100 % is one core. "
            "Where the CPU is saturated, the figure shows the host's limit, not the drive's."
        ),
        tables=("cells", "steady_state"),
        when=("demand_cpu",),
        place=130,
    ),
    FigureKind(
        name="demand_outstanding",
        title="Outstanding I/Os",
        caption=(
            "I/O rate and mean latency against all outstanding I/Os (threads times depth), a line for each "
            "number of threads. Where lines coincide, only the number of outstanding I/Os matters. Beyond "
            "the knee the latency grows and the rate does not."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=110,
    ),
    FigureKind(
        name="demand_variation",
        title="Demand variation",
        caption=(
            "I/O rate against queue depth with a line for each number of threads, one panel per workload. "
            "Where a line bends and stays flat the drive is saturated: more I/Os outstanding only wait "
            "longer."
        ),
        tables=("cells", "steady_state"),
        when=("demand",),
        place=90,
    ),
)
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
    return table.assign(panel=table["workload"], line=[in_words(count) for count in table["threads"]])


def in_words(threads: int) -> str:
    """Return a number of threads in words."""
    return f"{threads} thread{'' if threads == 1 else 's'}"


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
