"""Replays over time: fidelity, rates of the median run, and passes through phases."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import Quantity, format_latency, format_time, quantity
from drivelab.figures.families.curves import Curve, Curves, exceedance
from drivelab.figures.families.lines import Lines, Panel, X
from drivelab.figures.kinds import replays as common
from drivelab.figures.kinds.trace import edges_s, nothing, steps, time_axis
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "replay_fidelity", "Fidelity of the replay",
        "Delay between deadline and issue of each request in the counted runs; each step up is one more nine. For "
        "comparison, the host's wake-up delay, measured before each run: no replay is more punctual than its host. "
        "Below: requests due and issued over time in the median run.",
        tables=("replays", "replay_issue_errors", "replay_over_time"), when=("replay",), place=250,
    ),
    FigureKind(
        "replay_over_time", "Replay over time",
        "Rate, bandwidth and mean latency of the median run in a hundred intervals. Planned values and latencies in "
        "the trace are grey, replayed ones blue.",
        tables=("replays", "replay_over_time"), when=("replay",), place=270,
    ),
    FigureKind(
        "replay_phases", "Consistency, pass by pass",
        "Replays pass by pass through the phases of the test. Between the passes, the test changes the state of the "
        "drive. A consistent drive keeps its level and returns to it in recovery.",
        tables=("replays", "replay_passes"), when=("phases",), place=290,
    ),
)  # fmt: skip

_TITLE = "Fidelity of the replay"
_LEAST_US = 0.1
"""Smallest delay on the axis: a logarithmic axis has no zero, so shorter delays are drawn here."""
_LEFT = {50: 0.5, 95: 0.05, 99: 0.01}
"""Share of the requests above each percentile that is marked."""


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
    groups = {f"issue error, {name}": errors[errors["trace"] == name] for name in names}
    if len(names) == 1 or len(names) > common.MOST_LINES:
        groups = {"issue error" if len(names) == 1 else f"issue error, all {len(names)} traces": errors}
    shares = {name: exceedance((part["error_ns"] / 1e3).clip(lower=_LEAST_US), part["count"])
              for name, part in groups.items()}  # fmt: skip
    curves = [
        Curve(name, share, colour, style.DASHES[place % 4], gid="issue error")
        for place, ((name, share), colour) in enumerate(zip(shares.items(), style.colours(len(shares)), strict=True))
    ]
    wakeups = {left: float(runs[f"wakeup_p{percent}_us"].median())
               for percent, left in _LEFT.items() if runs[f"wakeup_p{percent}_us"].notna().any()}  # fmt: skip
    if wakeups:
        known = pd.Series(list(wakeups), index=[max(delay_us, _LEAST_US) for delay_us in wakeups.values()])
        curves.append(Curve("wake-up delay of this host", known, style.MUTED, ":", "D", "wake-up"))
    Curves("Issued after the deadline (µs, ms), log scale", "Issued within (% of all),\nlog scale").draw_in(
        axes, curves
    )
    for line in axes.get_lines():
        if line.get_gid() == "wake-up":
            line.set(drawstyle="default", markevery=1)
    if len(groups) == 1:
        _mark(axes, next(iter(shares.values())))


def _mark(axes: Axes, share: pd.Series) -> None:
    """Mark percentiles on the curve with their values, above the curve unless the axis begins there."""
    for percent, left in _LEFT.items():
        at = float(share.index[share > left][-1])
        axes.plot(at, left, marker="o", color=style.INK, linestyle="none", gid="percentile", zorder=4)
        near = at < 7 * _LEAST_US
        bound = "≤ " if at <= _LEAST_US else ""  # where the axis begins
        axes.annotate(f"{percent} %: {bound}{format_latency(at)}", (at, left), (7, -1) if near else (-6, 2),
                      textcoords="offset points", ha="left" if near else "right", va="top" if near else "bottom",
                      fontsize=style.SMALL_PT)  # fmt: skip


def _over_time(axes: Axes, over_time: pd.DataFrame) -> None:
    selection.require(over_time, "replay_over_time")
    rows = over_time.sort_values("begin_s")
    edges = edges_s(rows)
    at, end_s = edges / time_axis(axes, float(edges[-1])), float(edges[-1])
    planned, issued = rows["planned_requests"], rows["issued_requests"]
    if planned.notna().any():
        steps(axes, planned, at, "due", common.PLANNED, fill=True, alpha=0.55, gid="due")
    if issued.notna().any():
        steps(axes, issued, at, "issued", style.INK, linewidth=1.2, gid="issued")
    highest = float(np.nanmax(rows[["planned_requests", "issued_requests"]].to_numpy(float)))
    ax.scale_y(axes, [highest], Quantity("Requests", f"per {format_time(end_s / len(rows))}"))
    axes.set_ylabel(axes.get_ylabel().replace(" (", "\n(", 1))


_PANELS = {"iops": "planned_iops", "bandwidth_mib_s": "planned_bandwidth_mib_s",
           "mean_latency_us": "trace_mean_latency_us"}  # fmt: skip
"""Measured and given column of each panel."""


@style.styled
def replay_over_time(replays: pd.DataFrame, replay_over_time: pd.DataFrame) -> Figure:
    """Draw rate, bandwidth and latency of the first trace's median run over time.

    Raises ValueError for unsuitable tables.
    """
    selection.require(replays, "replays")
    run = common.median_runs(replays).iloc[[0]]
    rows = common.of_runs(replay_over_time, run, "replay_over_time").sort_values("begin_s")
    if rows.empty:
        return nothing("Replay over time", "Deadlines and times of single requests are unknown.")
    figure = style.new_figure("Replay over time", height_in=6.2)
    several = len(common.counted(replays, "replays")) > 1
    notes = [f"Shown: {common.run_name(run.iloc[0])}" + (", the median of the counted runs" if several else "")]
    if replays["trace"].nunique() > 1:
        notes.append(f"one of {replays['trace'].nunique()} traces")
    paced = bool(run["timing_mode"].iloc[0] != "asap")
    if not paced:
        notes.append("issued as soon as possible, so there is no planned rate")
    panels = figure.subplots(len(_PANELS), 1, sharex=True)
    edges = edges_s(rows)
    for axes, (measured, given) in zip(panels, _PANELS.items(), strict=True):
        at = edges / time_axis(axes, float(edges[-1]))
        columns = [measured, given] if paced or measured == "mean_latency_us" else [measured]
        _panel(axes, rows[[column for column in columns if rows[column].notna().any()]].astype(float), at, measured)
    for axes in panels[:-1]:
        axes.set_xlabel("")
    style.note(figure, "; ".join(notes))
    ax.legend(figure, panels[0], handles=[entry for axes in panels for entry in axes.get_legend_handles_labels()[0]])
    return figure


def _panel(axes: Axes, shown: pd.DataFrame, at: np.ndarray, measured: str) -> None:
    if shown.empty or not len(shown.columns):
        axes.set_ylabel(quantity(measured, 0.0).label)
        return
    scale = quantity(measured, float(shown.max(axis=None)))
    known = (shown / scale.divisor).stack().dropna().tolist()
    latency = measured == "mean_latency_us"
    for column in reversed(shown.columns):
        heights = shown[column] / scale.divisor
        if column == measured:
            steps(axes, heights, at, "replayed", "#0173b2", linewidth=1.4, gid=column)
        elif latency:
            steps(axes, heights, at, "in the trace", common.PLANNED, linewidth=1.4, gid=column)
        else:
            steps(axes, heights, at, "planned", common.PLANNED, fill=True, alpha=0.55, gid=column)
    log = latency and ax.is_wide(known)
    ax.scale_y(axes, known, scale, log=log)
    if log:
        axes.set_ylabel(f"{scale.label},\nlog scale")  # a panel is too low for one line


_METRICS = ("access_time_us", "bandwidth_mib_s", "score")
_PASS = ["step", "phase", "phase_pass", "repeat"]
_SHADES = ("#f0f0f0", "#ffffff")


@style.styled
def replay_phases(replays: pd.DataFrame, replay_passes: pd.DataFrame) -> Figure:
    """Draw access time, bandwidth and score of each pass in order, with a line for each of a few traces.

    Raises ValueError for unsuitable tables, such as replays without phases or of several recordings.
    """
    selection.require(replays, "replays")
    selection.require_one(replay_passes, "recording", "replay_passes")
    passes = replay_passes[replay_passes["phase"].notna()].reset_index(drop=True)
    if passes.empty:
        raise ValueError("table 'replay_passes' has no phases; this figure is for a protocol that repeats by phase")
    metrics = tuple(metric for metric in _METRICS if passes[metric].notna().any())
    if not metrics:
        return nothing("Consistency", "No read or write completed, so access time and busy time are unknown.")
    names = common.traces(replays)
    whole = f"set of {len(names)} traces" if len(names) > 1 else names[0]
    table = passes.assign(place=range(1, len(passes) + 1), line=whole)
    lines = names if 1 < len(names) <= common.MOST_LINES else []
    if lines:
        of_traces = replays[replays["phase"].notna()].merge(table[[*_PASS, "place"]], on=_PASS)
        table = pd.concat([table, of_traces.assign(line=of_traces["trace"])])
    colours = style.colours(len(lines))
    looks = {name: Look(colours[place], style.MARKERS[place + 1], "-", 4.0) for place, name in enumerate(lines)}
    looks[whole] = Look(to_rgb(style.INK), "o", "-")

    def phases(panel: Panel) -> Sequence[Artist]:
        """Shade alternate phases and name them above the first axes."""
        for number, (_, part) in enumerate(passes.groupby((passes["phase"] != passes["phase"].shift()).cumsum())):
            first, last = part.index[0] + 0.5, part.index[-1] + 1.5
            panel.axes.axvspan(first, last, color=_SHADES[number % 2], zorder=0, linewidth=0, gid="phase")
            if panel.is_first:
                style.above(panel.axes, (first + last) / 2, str(part["phase"].iloc[0]))
        return ()

    return Lines(
        "Consistency: pass by pass", metrics, X("place", "Pass (number)", "rounds"), stacked=True, row_in=1.8,
        looks=lambda points: looks, linear=metrics, marks=phases,
    ).draw(table.drop(columns="drive").astype(dict.fromkeys(metrics, float)))  # fmt: skip
