"""Footprint of a trace over time: blocks accessed so far, and in each interval."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.kinds.trace import trace_common as common
from drivelab.figures.registry import FigureKind

FIGURES = (
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
