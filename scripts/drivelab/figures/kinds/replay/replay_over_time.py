"""A replay over time: planned and replayed rates, bandwidth and latency."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.kinds.replay import replay_common as common
from drivelab.figures.kinds.trace.trace_common import nothing, time_axis
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="replay_over_time",
        title="Replay over time",
        caption=(
            "Rate, bandwidth and mean latency of the median run in a hundred intervals. Planned values and "
            "latencies in the trace are grey, replayed ones blue."
        ),
        tables=("replays", "replay_over_time"),
        when=("replay",),
        place=270,
    ),
)

_PANELS = (("iops", "planned_iops"), ("bandwidth_mib_s", "planned_bandwidth_mib_s"),
           ("mean_latency_us", "trace_mean_latency_us"))  # fmt: skip


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
    selection.require(rows, "replay_over_time")
    figure = style.new_figure("Replay over time", height_in=6.2)
    several = len(common.counted(replays, "replays")) > 1
    notes = [f"Shown: {common.run_name(run.iloc[0])}" + (", the median of the counted runs" if several else "")]
    if replays["trace"].nunique() > 1:
        notes.append(f"one of {replays['trace'].nunique()} traces")
    paced = bool(run["timing_mode"].iloc[0] != "asap")
    panels = figure.subplots(len(_PANELS), 1, sharex=True)
    end_s = float(rows["end_s"].iloc[-1])
    for axes, (measured, given) in zip(panels, _PANELS, strict=True):
        edges = np.append(rows["begin_s"], end_s) / time_axis(axes, end_s)
        _panel(axes, rows, edges, measured, given if paced or measured == "mean_latency_us" else None)
    for axes in panels[:-1]:
        axes.set_xlabel("")
    if not paced:
        notes.append("issued as soon as possible, so there is no planned rate")
    style.note(figure, "; ".join(notes))
    handles = {str(handle.get_label()): handle for axes in panels for handle in axes.get_legend_handles_labels()[0]}
    ax.legend(figure, panels[0], handles=list(handles.values()))
    return figure


def _panel(axes: Axes, rows: pd.DataFrame, edges: np.ndarray, measured: str, given: str | None) -> None:
    shown = [name for name in (measured, given) if name is not None and rows[name].notna().any()]
    values = {name: rows[name].to_numpy(float) for name in shown}
    known = [value for name in shown for value in values[name][np.isfinite(values[name])]]
    if not known:
        axes.set_ylabel(quantity(measured, 0.0).label)
        return
    scale = quantity(measured, max(known))
    latency = measured == "mean_latency_us"
    log = latency and ax.is_wide(known)
    if given in values:
        planned = values[given] / scale.divisor
        if latency:
            axes.stairs(planned, edges, baseline=None, color=common.PLANNED, linewidth=1.4, label="in the trace",
                        gid=given)  # fmt: skip
        else:
            axes.stairs(planned, edges, fill=True, color=common.PLANNED, alpha=0.55, label="planned", gid=given)
    if measured in values:
        axes.stairs(values[measured] / scale.divisor, edges, baseline=None, color="#0173b2", linewidth=1.4,
                    label="replayed", gid=measured)  # fmt: skip
    ax.scale_y(axes, [value / scale.divisor for value in known], scale, log=log)
    if log:
        axes.set_ylabel(f"{scale.label},\nlog scale")  # a panel is too low for one line
