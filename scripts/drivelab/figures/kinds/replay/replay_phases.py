"""A consistency test: replays pass by pass through the phases of the test."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.kinds.replay import replay_common as common
from drivelab.figures.kinds.trace.trace_common import nothing
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="replay_phases",
        title="Consistency, pass by pass",
        caption=(
            "Replays pass by pass through the phases of the test. Between the passes, the test changes the "
            "state of the drive. A consistent drive keeps its level and returns to it in recovery."
        ),
        tables=("replays", "replay_passes"),
        when=("phases",),
        place=290,
    ),
)

_METRICS = ("access_time_us", "bandwidth_mib_s", "score")
_PASS = ["step", "phase", "phase_pass", "repeat"]
_SHADES = ("#f0f0f0", "#ffffff")


@style.styled
def replay_phases(replays: pd.DataFrame, replay_passes: pd.DataFrame) -> Figure:
    """Draw access time, bandwidth and score of each pass in order, with a thin line for each of a few traces.

    Raises ValueError for unsuitable tables, such as replays without phases or of several recordings.
    """
    selection.require(replays, "replays")
    selection.require_one(replay_passes, "recording", "replay_passes")
    passes = replay_passes[replay_passes["phase"].notna()].reset_index(drop=True)
    if passes.empty:
        raise ValueError("table 'replay_passes' has no phases; this figure is for a protocol that repeats by phase")
    metrics = [metric for metric in _METRICS if passes[metric].notna().any()]
    if not metrics:
        return nothing("Consistency", "No read or write completed, so access time and busy time are unknown.")
    figure = style.new_figure("Consistency: pass by pass", height_in=1.2 + 1.7 * len(metrics))
    panels = figure.subplots(len(metrics), 1, sharex=True, squeeze=False)[:, 0]
    places = {tuple(row): place for place, row in enumerate(passes[_PASS].itertuples(index=False), start=1)}
    names = common.traces(replays)
    lines = names if 1 < len(names) <= common.MOST_LINES else []
    by_trace = replays[replays["phase"].notna()]
    by_trace = by_trace.assign(place=[places[tuple(row)] for row in by_trace[_PASS].itertuples(index=False)])
    for axes, metric in zip(panels, metrics, strict=True):
        largest = max(float(passes[metric].max()), float(by_trace[metric].max()) if lines else 0.0)
        scale = quantity(metric, largest)
        values = passes[metric].astype(float) / scale.divisor
        for name, colour in zip(lines, style.colours(len(lines)), strict=True):
            part = by_trace[by_trace["trace"] == name]
            marker = style.MARKERS[lines.index(name)]
            axes.plot(part["place"], part[metric].astype(float) / scale.divisor, color=colour, linewidth=0.9,
                      marker=marker, markersize=3, label=name, gid=f"{metric} {name}")  # fmt: skip
        axes.plot(range(1, len(passes) + 1), values, color=style.INK, marker="o", gid=metric,
                  label=f"set of {len(names)} traces" if len(names) > 1 else names[0])  # fmt: skip
        ax.scale_y(axes, [float(value) for value in values] + [largest / scale.divisor], scale)
        axes.set_ylabel(f"{scale.name}\n({scale.unit})")
        ax.round_axis(axes, 1, len(passes))
        axes.grid(visible=False, axis="x")
        _phases(axes, passes["phase"], named=axes is panels[0])
        axes.set_xlabel("Pass (number)" if axes is panels[-1] else "")
    ax.legend(figure, panels[0])
    return figure


def _phases(axes: Axes, phases: pd.Series, *, named: bool) -> None:
    """Shade alternate phases and name them above the first axes."""
    begins = [place for place in range(len(phases)) if place == 0 or phases[place] != phases[place - 1]]
    for number, (first, end) in enumerate(zip(begins, [*begins[1:], len(phases)], strict=True)):
        axes.axvspan(first + 0.5, end + 0.5, color=_SHADES[number % 2], zorder=0, linewidth=0, gid="phase")
        if named:
            axes.annotate(phases[first], ((first + end + 1) / 2, 1.0), (0, 3), xycoords=("data", "axes fraction"),
                          textcoords="offset points", ha="center", va="bottom", fontsize=style.SMALL_PT,
                          gid="phase name")  # fmt: skip
