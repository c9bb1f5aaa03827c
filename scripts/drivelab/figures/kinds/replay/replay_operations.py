"""Operations of a replay: counts and mean latencies, and their latency distribution beside that of the trace."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency
from drivelab.figures.kinds.replay import replay_common as common
from drivelab.figures.kinds.trace.trace_common import DIRECTIONS, nothing
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="replay_operations",
        title="Operations, planned and replayed",
        caption=(
            "Requests planned, issued and completed in the median run, by operation, and their mean latency "
            "in the replay and in the trace."
        ),
        tables=("replays", "replay_operations"),
        when=("replay",),
        place=280,
    ),
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
_STAGES = {"planned": common.PLANNED, "issued": "#0173b2", "completed": "#56b4e9"}
_NUMBERS = 1.45
"""Axis length as a multiple of the longest bar, with room for its number."""


@style.styled
def replay_operations(replays: pd.DataFrame, replay_operations: pd.DataFrame) -> Figure:
    """Draw requests by operation and stage, and mean latencies, of the median run of each trace.

    Raises ValueError for unsuitable tables.
    """
    selection.require(replays, "replays")
    runs = common.median_runs(replays)
    rows = common.of_runs(replay_operations, runs, "replay_operations")
    selection.require(rows, "replay_operations")
    names = [name for name in DIRECTIONS if rows.loc[rows["operation"] == name, "planned_requests"].sum() > 0]
    figure = style.new_figure("Operations, planned and replayed", height_in=1.9 + 0.62 * len(names))
    shown = common.run_name(runs.iloc[0]) if len(runs) == 1 else f"the median run of each of {len(runs)} traces"
    failed = int(rows["failed_requests"].sum())
    style.note(figure, f"Shown: {shown}" + (f"; {failed:,} requests failed" if failed else ""))
    counts, latencies = figure.subplots(1, 2, sharey=True)
    _counts(counts, rows, names)
    _latencies(latencies, rows, names)
    counts.set_yticks(range(len(names)), names)
    counts.set_ylim(len(names) - 0.5, -0.5)
    handles = [handle for axes in (counts, latencies) for handle in axes.get_legend_handles_labels()[0]]
    ax.legend(figure, counts, handles=handles)
    return figure


def _counts(axes: Axes, rows: pd.DataFrame, names: list[str]) -> None:
    counts = {
        stage: [int(rows.loc[rows["operation"] == name, f"{stage}_requests"].sum()) for name in names]
        for stage in _STAGES
    }
    largest = max(max(values) for values in counts.values())
    for place, (stage, colour) in enumerate(_STAGES.items()):
        at = [row + 0.27 * (place - 1) for row in range(len(names))]
        axes.barh(at, counts[stage], 0.24, color=colour, label=stage, gid=stage)
        for y, count, planned in zip(at, counts[stage], counts["planned"], strict=True):
            if stage == "planned" or count != planned:
                axes.annotate(f"{count:,}", (count, y), (3, 0), textcoords="offset points", va="center",
                              fontsize=style.SMALL_PT, color=style.INK if count == planned else style.ALARM,
                              gid="count")  # fmt: skip
    axes.set_xlim(0, largest * _NUMBERS or 1.0)
    ax.plain_numbers(axes, "x")
    axes.set_xlabel("Requests (number)")
    axes.grid(visible=False, axis="y")


def _latencies(axes: Axes, rows: pd.DataFrame, names: list[str]) -> None:
    known: list[float] = []
    for column, marker, colour, name in (
        ("trace_mean_latency_us", "D", style.MUTED, "latency in the trace"),
        ("mean_latency_us", "o", "#d55e00", "latency replayed"),
    ):
        points = [(_mean(rows[rows["operation"] == name], column), row) for row, name in enumerate(names)]
        points = [(value, row) for value, row in points if value == value]
        known += [value for value, _ in points]
        if points:
            hollow = marker == "D"
            axes.plot(*zip(*points, strict=True), linestyle="none", marker=marker, color=colour, markersize=7,
                      markerfacecolor="white" if hollow else colour, label=name, gid=column)  # fmt: skip
    if known:
        ax.log_axis(axes, "x", max(min(known), 0.1), max(known), format_latency)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 3), numticks=8))  # the panel is narrow
    axes.set_xlabel("Mean latency (µs, ms, s), log scale")


def _mean(rows: pd.DataFrame, column: str) -> float:
    """Return the mean over all requests of an operation in all traces."""
    known = rows[rows[column].notna() & (rows["completed_requests"] > 0)]
    weights = known["completed_requests"].to_numpy(float)
    return float((known[column].to_numpy(float) * weights).sum() / weights.sum()) if len(known) else float("nan")


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
        return nothing(_TITLE, "No read or write completed, so the distribution is unknown.")
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
