"""Queue depth and footprint of a trace over time."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import Quantity
from drivelab.figures.kinds.trace import trace_common as common
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="trace_depth",
        title="Queue depth over time",
        caption=(
            "Requests in flight in each interval, counted from queueing and from dispatch to completion: "
            "the mean above, the maximum below."
        ),
        tables=("trace_over_time", "trace_overview"),
        status="trace_overview",
        when=("trace",),
        place=490,
    ),
    FigureKind(
        name="trace_footprint",
        title="Footprint over time",
        caption=(
            "Blocks that the trace has read or written so far, each counted once, and the blocks that it "
            "accesses in each interval."
        ),
        tables=("trace_over_time",),
        status="trace_overview",
        when=("trace",),
        place=450,
    ),
)


@style.styled
def trace_depth(over_time: pd.DataFrame, overview: pd.DataFrame) -> Figure:
    """Draw mean and maximum depth of each interval, from tables `trace_over_time` and `trace_overview`.

    Raises ValueError for unsuitable tables.
    """
    selection.require(over_time, "trace_over_time")
    selection.require(overview, "trace_overview")
    title, facts = "Queue depth over time", overview.iloc[0]
    if not facts["duration_s"]:
        return common.nothing(title, "The trace has no duration, so there is no depth over time.")
    known = [name for name in ("queue", "dispatch") if over_time[f"{name}_depth_mean"].notna().any()]
    if not known:
        return common.nothing(title, "The trace has no completion times, so the depth is unknown.")
    edges = common.edges_s(over_time)
    figure = style.new_figure(title, height_in=5.0)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, columns, name in (
        (panels[0], ("queue_depth_mean", "dispatch_depth_mean"), "Mean depth"),
        (panels[1], (f"{known[0]}_depth_max",), "Largest depth"),
    ):
        divisor = common.time_axis(axes, float(edges[-1]))
        shown = [column for column in columns if over_time[column].notna().any()]
        for column in shown:
            queued = column.startswith("queue")
            axes.stairs(
                over_time[column],
                edges / divisor,
                baseline=None,
                color=common.DIRECTIONS["read" if queued else "write"],
                linestyle="-" if queued else "--",
                linewidth=1.6,
                label="queued to completed" if queued else "dispatched to completed: at the drive",
                gid=column,
            )
        largest = max((float(over_time[column].max()) for column in shown), default=0.0)
        ax.scale_y(axes, [largest], Quantity(name, "requests"))
        if not shown:
            axes.text(0.5, 0.5, "unknown: too many requests in flight", transform=axes.transAxes, ha="center")
    panels[0].set_xlabel("")
    missing = int(facts["without_completion"])
    if missing:
        style.note(figure, f"{missing:,} of {facts['requests']:,} requests have no completion time and are left out")
    ax.legend(figure, panels[0])
    return figure


@style.styled
def trace_footprint(over_time: pd.DataFrame) -> Figure:
    """Draw footprint since the beginning and working set of each interval, from `trace_over_time`.

    Raises ValueError for an unsuitable table.
    """
    selection.require(over_time, "trace_over_time")
    title = "Footprint over time"
    largest = float(over_time["footprint_bytes"].max())
    if not largest:
        return common.nothing(title, "The trace has no reads or writes of data.")
    figure = style.new_figure(title)
    axes = figure.subplots()
    edges = common.edges_s(over_time)
    divisor = common.time_axis(axes, float(edges[-1]))
    scale = common.size("Blocks read or written", largest)
    width = (over_time["end_s"] - over_time["begin_s"]).iloc[0]
    axes.stairs(
        over_time["footprint_bytes"] / scale.divisor,
        edges / divisor,
        baseline=None,
        color=common.DIRECTIONS["read"],
        linewidth=2,
        label="footprint: all so far",
        gid="footprint",
    )
    axes.stairs(
        over_time["working_set_bytes"] / scale.divisor,
        edges / divisor,
        fill=True,
        color=common.DIRECTIONS["write"],
        alpha=0.75,
        label=f"working set: within {common.duration(width)}",
        gid="working set",
    )
    block_bytes = int(over_time["block_bytes"].iloc[0])
    ax.scale_y(axes, [largest / scale.divisor], scale)
    style.note(figure, f"Counted in whole blocks of {format_size(block_bytes)}; discards and write-zeroes do not count")
    ax.legend(figure, axes)
    return figure
