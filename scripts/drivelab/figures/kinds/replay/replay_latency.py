"""Latency of a replay, and of the same requests in the trace."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.kinds.replay import replay_common as common
from drivelab.figures.kinds.trace.trace_common import DIRECTIONS, nothing
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="replay_latency",
        title="Latency of the replay and of the trace",
        caption=(
            "Share of requests that were faster than a latency, in the counted runs and in the trace. Both "
            "axes are logarithmic: each step up is one more nine."
        ),
        tables=("replays", "replay_latency"),
        when=("replay",),
        place=260,
    ),
)

_SOURCES = {"replay": ("-", 1.8), "trace": (":", 1.5)}
_TAIL = 0.01
_TITLE = "Latency of the replay and of the trace"


@style.styled
def replay_latency(replays: pd.DataFrame, replay_latency: pd.DataFrame) -> Figure:
    """Draw exceedance curves of reads and writes over all counted runs and traces; both axes logarithmic.

    Raises ValueError for unsuitable tables.
    """
    selection.require(replays, "replays")
    bins = common.of_runs(replay_latency, common.counted(replays, "replays"), "replay_latency")
    bins = bins[bins["operation"].isin(["read", "write"])]
    if bins.empty:
        return nothing(_TITLE, "The engine does not report single requests, so the distribution is unknown.")
    selection.require(bins, "replay_latency")
    figure = style.new_figure(_TITLE)
    axes = figure.subplots()
    smallest, low, high = 1.0, float("inf"), 0.0
    for operation in ("read", "write"):
        for source, (dashes, width) in _SOURCES.items():
            part = bins[(bins["operation"] == operation) & (bins["source"] == source)]
            if part.empty:
                continue
            values, share = common.exceedance(part["latency_ns"], part["count"])
            values = values.clip(min=100.0) / 1e3
            smallest = min(smallest, float(share[-1]))
            low, high = min(low, values[0]), max(high, values[-1])
            tail = values[share > _TAIL][-1]
            axes.plot(values, share, drawstyle="steps-pre", color=DIRECTIONS[operation], linestyle=dashes,
                      linewidth=width, gid=f"{operation} {source}",
                      label=f"{operation}, {source}: 99 % in {format_latency(tail)}")  # fmt: skip
    ax.log_axis(axes, "x", low, high, format_latency)
    axes.set_xlabel("Latency (µs, ms, s), log scale")
    ax.nines_axis(axes, smallest / 2, "Faster requests (% of all), log scale")
    if (bins["source"] == "trace").any():
        style.note(figure, "The trace's latency is of the drive and system on which the trace was captured")
    else:
        style.note(figure, "The trace has no latencies")
    ax.legend(figure, axes)
    return figure
