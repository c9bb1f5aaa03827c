"""Cross stimulus: throughput and latency against time, through soaks of different workloads."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.recovery import cross_stimulus
from drivelab.figures import axes as ax
from drivelab.figures import selection, style
from drivelab.figures.quantities import elapsed, quantity

_METRICS = ("bandwidth_mib_s", "mean_latency_us", "max_latency_us")
_COLUMNS = ("recording", "kind", "step", "round", "workload", "threads", "queue_depth", "elapsed_s", "runtime_s",
            "bytes_written")  # fmt: skip


@style.styled
def stimulus(cells: pd.DataFrame) -> Figure:
    """Throughput, mean and maximum latency of every slice in three panels, a colour per workload.

    Where a workload comes back after another, the mean before is a dashed line, and a dotted one marks when the
    throughput had recovered to it; if it had not, that is said. `cells` holds the soaks of one recording.
    Raises ValueError for unsuitable tables.
    """
    selection.require(cells, (*_COLUMNS, *_METRICS), "cells")
    soaks = selection.rows(cells, "cells", kind="soak")
    selection.require_one(soaks, "recording", "cells")
    soaks = soaks.assign(end_s=soaks["elapsed_s"] + soaks["runtime_s"] - soaks["elapsed_s"].min())
    time = elapsed(float(soaks["end_s"].max()))
    workloads = list(soaks.sort_values("step")["workload"].drop_duplicates())
    colours = dict(zip(workloads, style.colours(len(workloads)), strict=True))
    figure = style.new_figure("Cross stimulus", height_in=6.6)
    panels = figure.subplots(3, 1, sharex=True)
    for axes, metric in zip(panels, _METRICS, strict=True):
        scale = quantity(metric, float(soaks[metric].max()))
        named: set[str] = set()
        for (_, workload), part in soaks.sort_values(["step", "round"]).groupby(["step", "workload"]):
            axes.plot(part["end_s"] / time.divisor, part[metric] / scale.divisor, color=colours[workload],
                      linewidth=1.4, marker="o" if len(part) < 40 else None, markersize=3,
                      label=None if workload in named else workload, gid=metric)  # fmt: skip
            named.add(workload)
        values = [float(one) for one in (soaks[metric] / scale.divisor).dropna()]
        ax.scale_y(axes, values, scale, log=ax.is_wide(values))
        axes.set_ylabel(axes.get_ylabel().replace(" (", "\n("))
    per_rate = quantity("bandwidth_mib_s", float(soaks["bandwidth_mib_s"].max())).divisor
    _recovery(figure, panels[0], soaks, time.divisor, per_rate)
    panels[-1].set_xlabel(time.label)
    panels[-1].set_xlim(0, float(soaks["end_s"].max()) / time.divisor * 1.01)
    ax.legend(figure, panels[0])
    return figure


def _recovery(figure: Figure, axes: Axes, soaks: pd.DataFrame, per_time: float, per_rate: float) -> None:
    """Marks of the recovery; it is of the throughput, so they are in that panel."""
    parts = [part for _, part in soaks.groupby("step")]
    named = False
    for one in cross_stimulus(soaks):
        before, after = _around(parts, one.workload, one.stimulus)
        level = float(np.average(before["bandwidth_mib_s"], weights=before["runtime_s"]))
        axes.plot([float(before["end_s"].iloc[0]) / per_time, float(after["end_s"].iloc[-1]) / per_time],
                  [level / per_rate] * 2, color=style.MUTED, linestyle="--", linewidth=1.1,
                  label=None if named else "mean before", gid="level")  # fmt: skip
        named = True
        if one.recovery is None:
            best = 100 * float(after["bandwidth_mib_s"].max()) / level
            style.note(figure, f"{one.workload} did not recover from {one.stimulus}: at best {best:.3g} % of its mean "
                               "throughput before")  # fmt: skip
            continue
        begin = float(after["end_s"].iloc[0] - after["runtime_s"].iloc[0])
        axes.axvline((begin + one.recovery.time_s) / per_time, color=style.ALARM, linestyle=":", linewidth=1.8,
                     label="recovered", gid="recovered")  # fmt: skip
        spent = elapsed(one.recovery.time_s)
        style.note(figure, f"{one.workload} recovered from {one.stimulus} within "
                           f"{one.recovery.time_s / spent.divisor:.3g} {spent.unit}")  # fmt: skip


def _around(parts: list[pd.DataFrame], workload: str, stimulus_: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    for before, between, after in zip(parts, parts[1:], parts[2:], strict=False):
        names = [one["workload"].iloc[0] for one in (before, between, after)]
        if names[0] == names[2] == workload and names[1] == stimulus_:
            return before, after
    raise ValueError(f"table 'cells' has no soaks of {workload} around {stimulus_}")
