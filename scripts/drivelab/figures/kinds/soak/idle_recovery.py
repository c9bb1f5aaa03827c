"""Recovery of a drive: in idle time, and from another workload."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.analysis.values.recovery import cross_stimulus
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import elapsed, quantity
from drivelab.figures.families.lines import Lines, Panel, X, apart
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="idle_recovery",
        title="Recovery in idle time",
        caption=(
            "I/O rate of bursts after idle time, and of the baselines without pauses between them. Numbers "
            "above the panel are the idle times before each burst. Bursts above the baseline show what the "
            "drive gained in idle time. The first burst of each series directly follows the baseline."
        ),
        tables=("cells",),
        when=("idle_recovery",),
        place=150,
    ),
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
_SHADES = ("#f0f0f0", "#ffffff")
_MOST_JOINED = 40
_LEAST_SHARE = 0.02
"""Share of the axis; a shorter baseline would be invisible as a line and gets a bar."""
_WAIT = re.compile(r"(\d+)(s|min|h)")
"""Value of a phase, such as `50s`."""


@style.styled
def idle_recovery(cells: pd.DataFrame) -> Figure:
    """Draw the I/O rate of each burst and baseline slice against time, one colour per idle time.

    Of the writes before the first burst, the last part is shown, as long as the next baseline. `cells` holds the loops
    and soaks of one recording. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    rows = cells.assign(end_s=cells["elapsed_s"] + cells["runtime_s"]).sort_values("end_s")
    bursts = rows[(rows["kind"] == "loop") & rows["pause_s"].notna() & rows["phase_value"].notna()]
    if bursts.empty:
        raise ValueError("table 'cells' has no bursts after idle time")
    soaks = rows[rows["kind"] == "soak"]
    first = float(bursts["elapsed_s"].min())
    after = soaks[soaks["elapsed_s"] > first]
    span = after.groupby("step")["end_s"].agg(lambda ends: ends.max() - ends.min()).max() if len(after) else 60.0
    start = max(first - max(float(span), 1.0), float(rows["elapsed_s"].min()))
    soaks = soaks[soaks["end_s"] > start]
    time = elapsed(float(rows["end_s"].max()) - start)
    shown = pd.concat([bursts, soaks])
    scale = quantity("iops", float(shown["iops"].max()))

    phase = str(bursts["phase"].iloc[0])
    idle = phase == "wait"
    figure = style.new_figure(f"{scale.name} of bursts after idle time")
    style.note(figure, "above the panel: idle time before each burst" if idle else f"above: {phase}")
    axes = figure.subplots()
    name: str | None = "baseline, without pauses"
    whole_s = float(rows["end_s"].max()) - start
    for _, part in soaks.groupby("step"):
        short = part["end_s"].max() - part["end_s"].min() < _LEAST_SHARE * whole_s
        axes.plot((part["end_s"] - start) / time.divisor, part["iops"] / scale.divisor, color=style.MUTED,
                  linewidth=1.2, marker="_" if short else "", markersize=18, markeredgewidth=2,
                  markevery=[len(part) // 2], zorder=1.9, label=name, gid="baseline")  # fmt: skip
        name = None
    waits = list(bursts["phase_value"].drop_duplicates())
    for place, (wait, colour) in enumerate(zip(waits, style.ordered_colours(len(waits)), strict=True)):
        part = bursts[bursts["phase_value"] == wait]
        x, y = (part["end_s"] - start) / time.divisor, part["iops"] / scale.divisor
        few = len(part) <= _MOST_JOINED
        axes.plot(x, y, color=colour, marker=style.MARKERS[place], markersize=5 if few else 2.5,
                  linestyle=":" if few else "none", gid="bursts",
                  label=f"bursts after {_spaced(wait)} idle" if idle else f"bursts, {phase} {wait}")  # fmt: skip
        if not few:  # the first burst, directly after the baseline
            axes.plot(x[:1], y[:1], color=colour, marker=style.MARKERS[place], markersize=8, markeredgecolor="white",
                      zorder=3, label=f"_first after {wait}", gid="first burst")  # fmt: skip
        _shade(axes, rows[rows["phase_pass"] == part["phase_pass"].iloc[0]], start, time.divisor, place,
               _spaced(wait))  # fmt: skip
    axes.set_xlim(0, whole_s / time.divisor * 1.01)
    words.time(axes.xaxis, time.divisor, start)
    axes.set_xlabel(f"Time ({time.unit}), from shortly before the first burst")
    ax.scale_y(axes, [float(value) for value in shown["iops"] / scale.divisor], scale)
    ax.legend(figure, axes)
    return figure


def _spaced(wait: object) -> str:
    return _WAIT.sub(r"\1 \2", str(wait))


def _shade(axes: Axes, rows: pd.DataFrame, start: float, per_unit: float, place: int, wait: str) -> None:
    low, high = ((float(second) - start) / per_unit for second in (rows["elapsed_s"].min(), rows["end_s"].max()))
    axes.axvspan(low, high, color=_SHADES[place % 2], zorder=0, linewidth=0, gid="phase")
    axes.annotate(wait, ((low + high) / 2, 1.0), (0, 3), xycoords=("data", "axes fraction"),
                  textcoords="offset points", ha="center", va="bottom", fontsize=style.SMALL_PT,
                  gid="phase name")  # fmt: skip


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
    points = soaks.assign(at=soaks["end_s"] / time.divisor, line=soaks["workload"], part=soaks["step"])

    def marks(panel: Panel) -> Sequence[Artist]:
        words.time(panel.axes.xaxis, time.divisor, float(soaks["elapsed_s"].min()))
        return _recovery(panel, soaks, time.divisor) if panel.is_first else ()

    limits = 0.0, float(points["at"].max()) * 1.01
    return Lines("Cross stimulus", _METRICS, X("at", time.label, "linear", limits=limits), looks=apart, stacked=True,
                 row_in=1.8, marks=marks).draw(points.sort_values(["step", "round"]))  # fmt: skip


def _recovery(panel: Panel, soaks: pd.DataFrame, per_time: float) -> list[Artist]:
    """Mark the recovery of the throughput in its panel; return the legend entries."""
    parts = [part for _, part in soaks.groupby("step")]
    entries: list[Artist] = []
    for recovery in cross_stimulus(soaks):
        before, after = _around(parts, recovery.workload, recovery.stimulus)
        span = float(before["end_s"].iloc[0]) / per_time, float(after["end_s"].iloc[-1]) / per_time
        entries += panel.axes.plot(span, [recovery.level / panel.scale.divisor] * 2, color=style.MUTED, linestyle="--",
                                   linewidth=1.1, label="mean before", gid="level")  # fmt: skip
        begin = float(after["end_s"].iloc[0] - after["runtime_s"].iloc[0])
        results = []
        returns = ((recovery.recovery, "the mean before", ":"), (recovery.settled, "the settled level", "-."))
        for back, to, line in returns:
            if back is None:
                results.append(f"did not return to {to}")
                continue
            spent = elapsed(back.time_s)
            results.append(f"back at {to} within {back.time_s / spent.divisor:.3g} {spent.unit}")
            entries.append(panel.axes.axvline((begin + back.time_s) / per_time, color=style.ALARM, linestyle=line,
                                              linewidth=1.4, label=f"back at {to}", gid="recovered"))  # fmt: skip
        figure = panel.axes.get_figure(root=True)
        assert figure is not None
        style.note(figure, f"{recovery.workload} after {recovery.stimulus}: {'; '.join(results)}")
    return entries


def _around(parts: list[pd.DataFrame], workload: str, stimulus_: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    for before, between, after in zip(parts, parts[1:], parts[2:], strict=False):
        names = [part["workload"].iloc[0] for part in (before, between, after)]
        if names[0] == names[2] == workload and names[1] == stimulus_:
            return before, after
    raise ValueError(f"table 'cells' has no soaks of {workload} around {stimulus_}")
