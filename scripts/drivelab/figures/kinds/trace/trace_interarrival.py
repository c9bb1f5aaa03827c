"""Cumulative distribution of the times between arrivals of a trace."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.kinds.trace import trace_common as common
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="trace_interarrival",
        title="Time between arrivals",
        caption=(
            "Share of requests that arrived within a time after the previous request. A step to the left of "
            "the mean indicates bursts."
        ),
        tables=("trace_interarrival", "trace_overview"),
        status="trace_overview",
        when=("trace",),
        place=480,
    ),
)


@style.styled
def trace_interarrival(interarrival: pd.DataFrame, overview: pd.DataFrame) -> Figure:
    """Draw the share of arrivals within a time, from `trace_interarrival` and `trace_overview`.

    Raises ValueError for unsuitable tables.
    """
    selection.require(overview, "trace_overview")
    title = "Time between arrivals"
    facts = overview.iloc[0]
    if interarrival.empty or not interarrival["high_ns"].max():
        return common.nothing(title, "All requests of the trace arrive at the same time.")
    figure = style.new_figure(title)
    axes = figure.subplots()
    bins = interarrival.sort_values("low_ns")
    share = 100 * bins["requests"].cumsum() / bins["requests"].sum()
    at_once = 100 * float(bins["requests"][bins["high_ns"] == 0].sum()) / float(bins["requests"].sum())
    later = bins["high_ns"] > 0
    at_us = (bins["low_ns"] + bins["high_ns"])[later].to_numpy(float) / 2e3
    mean_us = float(facts["interarrival_mean_us"])
    least_us, largest_us = min(at_us[0], mean_us), max(at_us[-1], mean_us)
    axes.plot(
        np.concatenate([[least_us / 2], at_us, [largest_us * 2]]),
        np.concatenate([[at_once], share[later], [100.0]]),
        drawstyle="steps-post",
        color=common.DIRECTIONS["read"],
        linewidth=2,
        gid="line",
    )
    axes.axvline(mean_us, color=style.INK, linestyle="--", linewidth=1.2, gid="mean", label="mean")
    ax.log_axis(axes, "x", least_us, largest_us, format_latency)
    axes.set_ylim(0, 103)
    axes.set_xlabel("Time since the previous arrival (ns, µs, ms, s), log scale")
    axes.set_ylabel("Arrivals within that time (%)")
    parts = [f"mean {format_latency(mean_us)}"]
    if np.isfinite(facts["interarrival_variation"]):
        parts.append(f"coefficient of variation {facts['interarrival_variation']:.2g} (Poisson: 1)")
    if at_once:
        parts.append(f"{at_once:.3g} % at the same time as the previous request")
    if facts["time_resolution_ns"] > 1:
        parts.append(f"times are multiples of {common.duration(facts['time_resolution_ns'] / 1e9)}")
    style.note(figure, "; ".join(parts))
    ax.legend(figure, axes)
    return figure
