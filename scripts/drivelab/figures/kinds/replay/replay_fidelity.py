"""Fidelity of a replay: issue errors, and requests due and issued over time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import Quantity, format_latency
from drivelab.figures.kinds.replay import replay_common as common
from drivelab.figures.kinds.trace.trace_common import duration, nothing, time_axis
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="replay_fidelity",
        title="Fidelity of the replay",
        caption=(
            "Delay between deadline and issue of each request in the counted runs; each step up is one more "
            "nine. For comparison, the host's wake-up delay, measured before each run: no replay is more "
            "punctual than its host. Below: requests due and issued over time in the median run."
        ),
        tables=("replays", "replay_issue_errors", "replay_over_time"),
        when=("replay",),
        place=250,
    ),
)

_TITLE = "Fidelity of the replay"
_LEAST_US = 0.1
"""Smallest delay on the axis: a logarithmic axis has no zero, so shorter delays are drawn here."""
_WAKEUPS = ((0.5, "wakeup_p50_us"), (0.05, "wakeup_p95_us"), (0.01, "wakeup_p99_us"))
_ERRORS = ((0.5, "50"), (0.05, "95"), (0.01, "99"))


@style.styled
def replay_fidelity(replays: pd.DataFrame, replay_issue_errors: pd.DataFrame, replay_over_time: pd.DataFrame) -> Figure:
    """Draw the issue errors with the host's wake-up delays, and requests due and issued over time.

    The errors are of all counted runs, the requests over time of the median run. Requests issued as soon as possible
    have no deadline and no error. Raises ValueError for unsuitable tables.
    """
    selection.require(replays, "replays")
    runs = common.counted(replays, "replays")
    errors = common.of_runs(replay_issue_errors, runs, "replay_issue_errors")
    shown = common.median_runs(replays).iloc[[0]]
    over_time = common.of_runs(replay_over_time, shown, "replay_over_time")
    if errors.empty and over_time.empty:
        return nothing(_TITLE, "Deadlines and times of single requests are unknown.")
    figure = style.new_figure(_TITLE, height_in=5.6 if len(errors) else 3.0)
    panels = figure.subplots(2 if len(errors) else 1, 1, squeeze=False, height_ratios=[3, 2] if len(errors) else None)
    if len(errors):
        _distribution(panels[0][0], errors, runs)
    elif (runs["timing_mode"] == "asap").all():
        style.note(figure, "Requests have no deadline; they were issued as soon as possible")
    else:
        style.note(figure, "No request was issued, so issue errors are unknown")
    if replays["trace"].nunique() > 1:
        style.note(figure, f"Over time: {common.run_name(shown.iloc[0])}")
    _over_time(panels[-1][0], over_time)
    handles = [line for row in panels for line in row[0].get_legend_handles_labels()[0]]
    ax.legend(figure, panels[0][0], handles=handles)
    return figure


def _distribution(axes: Axes, errors: pd.DataFrame, runs: pd.DataFrame) -> None:
    names = common.traces(errors)
    groups = [(f"issue error, {name}", errors[errors["trace"] == name]) for name in names]
    if len(names) == 1 or len(names) > common.MOST_LINES:
        groups = [("issue error" if len(names) == 1 else f"issue error, all {len(names)} traces", errors)]
    smallest, largest = 1.0, 10 * _LEAST_US
    for number, (name, group) in enumerate(groups):
        values, share = common.exceedance(group["error_ns"], group["count"])
        values = np.maximum(values / 1e3, _LEAST_US)
        smallest, largest = min(smallest, float(share[-1])), max(largest, float(values[-1]))
        colour = style.colours(len(groups))[number]
        axes.plot(values, share, drawstyle="steps-pre", color=colour, linestyle=style.DASHES[number % 4], label=name,
                  gid="issue error")  # fmt: skip
        if len(groups) == 1:
            _mark(axes, values, share)
    known = [(share, float(runs[name].median())) for share, name in _WAKEUPS if runs[name].notna().any()]
    if known:
        delays = [max(value, _LEAST_US) for _, value in known]
        largest = max(largest, *delays)
        axes.plot(delays, [share for share, _ in known], color=style.MUTED, marker="D", linestyle=":",
                  label="wake-up delay of this host", gid="wake-up")  # fmt: skip
    ax.log_axis(axes, "x", _LEAST_US, largest, format_latency)
    axes.set_xlabel("Issued after the deadline (µs, ms), log scale")
    ax.nines_axis(axes, smallest / 2, "Issued within (% of all),\nlog scale")


def _mark(axes: Axes, values: np.ndarray, share: np.ndarray) -> None:
    """Mark percentiles on the curve with their values, above the curve unless the axis begins there."""
    for left, name in _ERRORS:
        at = float(values[np.flatnonzero(share > left)[-1]])
        axes.plot(at, left, marker="o", color=style.INK, linestyle="none", gid="percentile", zorder=4)
        near = at < 7 * _LEAST_US
        bound = "≤ " if at <= _LEAST_US else ""  # where the axis begins
        axes.annotate(f"{name} %: {bound}{format_latency(at)}", (at, left), (7, -1) if near else (-6, 2),
                      textcoords="offset points", ha="left" if near else "right", va="top" if near else "bottom",
                      fontsize=style.SMALL_PT)  # fmt: skip


def _over_time(axes: Axes, over_time: pd.DataFrame) -> None:
    selection.require(over_time, "replay_over_time")
    rows = over_time.sort_values("begin_s")
    end_s = float(rows["end_s"].iloc[-1])
    edges = np.append(rows["begin_s"], end_s) / time_axis(axes, end_s)
    planned, issued = (rows[f"{stage}_requests"].to_numpy(float) for stage in ("planned", "issued"))
    if not np.isnan(planned).all():
        axes.stairs(planned, edges, fill=True, color=common.PLANNED, alpha=0.55, label="due", gid="due")
    if not np.isnan(issued).all():
        axes.stairs(issued, edges, color=style.INK, linewidth=1.2, label="issued", gid="issued")
    highest = float(np.nanmax(np.concatenate([planned, issued])))
    quantity = Quantity("Requests", f"per {duration(end_s / len(rows))}")
    ax.scale_y(axes, [highest], quantity)
    axes.set_ylabel(f"{quantity.name}\n({quantity.unit})")
