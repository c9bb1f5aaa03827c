"""Cross stimulus recovery: throughput and latency through soaks of different workloads."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values.recovery import cross_stimulus
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="stimulus",
        title="Recovery from another workload",
        caption=(
            "Throughput, mean and maximum latency of each slice through soaks of different workloads. The "
            "dashed line is the mean throughput before the other workload, the dotted line the time at which "
            "the drive reached it again. If it did not, the figure says so."
        ),
        tables=("cells",),
        when=("stimulus",),
        place=210,
        rows="soaks",
    ),
)

_METRICS = ("bandwidth_mib_s", "mean_latency_us", "max_latency_us")


@style.styled
def stimulus(cells: pd.DataFrame) -> Figure:
    """Draw throughput, mean and maximum latency of each slice in three panels, a colour per workload.

    If a workload returns after another, a dashed line shows its mean before. Vertical lines mark when the throughput
    returned to that mean and to its settled level; a note says if it did not. `cells` holds the soaks of one recording.
    Raises ValueError for unsuitable tables.
    """
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
        values = [float(value) for value in (soaks[metric] / scale.divisor).dropna()]
        ax.scale_y(axes, values, scale, log=ax.is_wide(values))
        axes.set_ylabel(axes.get_ylabel().replace(" (", "\n("))
    per_rate = quantity("bandwidth_mib_s", float(soaks["bandwidth_mib_s"].max())).divisor
    _recovery(figure, panels[0], soaks, time.divisor, per_rate)
    panels[-1].set_xlabel(time.label)
    words.time(panels[-1].xaxis, time.divisor, float(soaks["elapsed_s"].min()))
    panels[-1].set_xlim(0, float(soaks["end_s"].max()) / time.divisor * 1.01)
    ax.legend(figure, panels[0])
    return figure


def _recovery(figure: Figure, axes: Axes, soaks: pd.DataFrame, per_time: float, per_rate: float) -> None:
    """Mark the recovery of the throughput in its panel."""
    parts = [part for _, part in soaks.groupby("step")]
    named = False
    for recovery in cross_stimulus(soaks):
        before, after = _around(parts, recovery.workload, recovery.stimulus)
        axes.plot([float(before["end_s"].iloc[0]) / per_time, float(after["end_s"].iloc[-1]) / per_time],
                  [recovery.level / per_rate] * 2, color=style.MUTED, linestyle="--", linewidth=1.1,
                  label=None if named else "mean before", gid="level")  # fmt: skip
        begin = float(after["end_s"].iloc[0] - after["runtime_s"].iloc[0])
        results = []
        returns = ((recovery.recovery, "the mean before", ":"), (recovery.settled, "the settled level", "-."))
        for back, to, line in returns:
            if back is None:
                results.append(f"did not return to {to}")
                continue
            spent = elapsed(back.time_s)
            results.append(f"back at {to} within {back.time_s / spent.divisor:.3g} {spent.unit}")
            axes.axvline((begin + back.time_s) / per_time, color=style.ALARM, linestyle=line, linewidth=1.4,
                         label=None if named else f"back at {to}", gid="recovered")  # fmt: skip
        named = True
        style.note(figure, f"{recovery.workload} after {recovery.stimulus}: {'; '.join(results)}")


def _around(parts: list[pd.DataFrame], workload: str, stimulus_: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    for before, between, after in zip(parts, parts[1:], parts[2:], strict=False):
        names = [part["workload"].iloc[0] for part in (before, between, after)]
        if names[0] == names[2] == workload and names[1] == stimulus_:
            return before, after
    raise ValueError(f"table 'cells' has no soaks of {workload} around {stimulus_}")
