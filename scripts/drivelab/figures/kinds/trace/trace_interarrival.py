"""Distributions of a trace: times between arrivals, and latencies when it was captured."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

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
    FigureKind(
        name="trace_latency",
        title="Latency where the trace was captured",
        caption=(
            "Share of requests that were faster than a latency on the drive on which the trace was captured. "
            "Both axes are logarithmic: each step up is one more nine."
        ),
        tables=("trace_latency",),
        status="trace_overview",
        when=("trace",),
        place=510,
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


_PHASES = (("Q2C", "Queued to completed (Q2C)"), ("D2C", "Dispatched to completed (D2C)"))


@style.styled
def trace_latency(latency: pd.DataFrame) -> Figure:
    """Draw distributions with nines on the y axis, from table `trace_latency`; both axes logarithmic.

    Raises ValueError for an unsuitable table.
    """
    title = "Latency where the trace was captured"
    shown = [phase for phase, _ in _PHASES if (latency["phase"] == phase).any()] if len(latency) else []
    if not shown:
        return common.nothing(title, "The trace has no completion times, so latencies are unknown.")
    latency = latency[latency["phase"].isin(shown)]
    figure = style.new_figure(title)
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    smallest, handles = 0.09, {}
    ends_us = np.maximum(latency["high_ns"].to_numpy(float), 1.0) / 1e3
    for axes, phase in zip(panels, shown, strict=True):
        for operation in (operation for operation in common.DIRECTIONS if (latency["operation"] == operation).any()):
            bins = latency[(latency["operation"] == operation) & (latency["phase"] == phase)].sort_values("low_ns")
            if bins.empty:
                continue
            counts = bins["requests"].to_numpy(float)
            slower = counts[::-1].cumsum()[::-1] / counts.sum()
            end_us = np.maximum(bins["high_ns"].to_numpy(float), 1.0) / 1e3
            beyond = 0.5 / counts.sum()  # the slowest request, half way to a share of zero
            smallest = min(smallest, beyond)
            (handles[operation],) = axes.plot(
                np.append(end_us, end_us[-1]),
                np.append(slower, beyond),
                drawstyle="steps-pre",
                color=common.DIRECTIONS[operation],
                linestyle=common.LINES[operation],
                label=operation,
                gid=f"{operation} {phase}",
            )
        ax.log_axis(axes, "x", float(ends_us.min()), float(ends_us.max()), format_latency)
        if len(shown) > 1:  # a narrow panel has room for few labels
            decades = np.log10(ends_us.max() / ends_us.min())
            axes.xaxis.set_major_locator(LogLocator(subs=(1,) if decades > 1.5 else (1, 3), numticks=8))
        axes.set_xlabel(f"{dict(_PHASES)[phase]}\n(µs, ms, s), log scale")
    ax.nines_axis(panels[0], smallest, "Faster requests (% of all), log scale")
    style.note(figure, "Latencies are of the drive and system on which the trace was captured")
    ax.legend(figure, panels[0], handles=list(handles.values()))
    return figure
