"""Recovery of a drive: in idle time, and from another workload."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from drivelab.analysis.values.recovery import cross_stimulus
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import elapsed
from drivelab.figures.families.lines import Lines, Panel, X, apart
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "idle_recovery", "Recovery in idle time",
        "I/O rate of bursts after idle time, and of the baselines without pauses between them. Numbers above the "
        "panel are the idle times before each burst. Bursts above the baseline show what the drive gained in idle "
        "time. The first burst of each series directly follows the baseline.",
        tables=("cells",), when=("idle_recovery",), place=150,
    ),
    FigureKind(
        "stimulus", "Recovery from another workload",
        "Throughput, mean and maximum latency of each slice through soaks of different workloads. The dashed line is "
        "the mean throughput before the other workload, the dotted line the time at which the drive reached it "
        "again. If it did not, the figure says so.",
        tables=("cells",), when=("stimulus",), place=210, rows="soaks",
    ),
)  # fmt: skip

_SHADES = ("#f0f0f0", "#ffffff")
_BASELINE = "baseline, without pauses"
_MOST_JOINED = 40
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
    end = float(rows["end_s"].max()) - start
    time = elapsed(end)
    phase, waits = str(bursts["phase"].iloc[0]), list(bursts["phase_value"].drop_duplicates())
    idle = phase == "wait"
    names = {wait: f"bursts after {_spaced(wait)} idle" if idle else f"bursts, {phase} {wait}" for wait in waits}
    points = pd.concat([soaks[soaks["end_s"] > start].assign(line=_BASELINE),
                        bursts.assign(line=bursts["phase_value"].map(names))])  # fmt: skip
    looks = {_BASELINE: Look(to_rgb(style.MUTED), "_", "-", 7.0)}
    for place, (wait, colour) in enumerate(zip(waits, style.ordered_colours(len(waits)), strict=True)):
        few = (bursts["phase_value"] == wait).sum() <= _MOST_JOINED
        looks[names[wait]] = Look(colour, style.MARKERS[place], ":" if few else "none", 5.0 if few else 4.0)

    def phases(panel: Panel) -> Sequence[Artist]:
        """Shade the time of each idle time, name it above the panel, and mark its first burst, after the baseline."""
        words.time(panel.axes.xaxis, time.divisor, start)
        for place, wait in enumerate(waits):
            part = bursts[bursts["phase_value"] == wait]
            turn = rows[rows["phase_pass"] == part["phase_pass"].iloc[0]]
            low, high = ((second - start) / time.divisor for second in (turn["elapsed_s"].min(), turn["end_s"].max()))
            panel.axes.axvspan(low, high, color=_SHADES[place % 2], zorder=0, linewidth=0, gid="phase")
            style.above(panel.axes, (low + high) / 2, _spaced(wait))
            look = looks[names[wait]]
            panel.axes.plot((part["end_s"].iloc[:1] - start) / time.divisor, panel.shown(part.iloc[:1]), markersize=8,
                            color=look.colour, marker=look.marker, markeredgecolor="white", zorder=3, label=names[wait],
                            gid="first burst")  # fmt: skip
        return ()

    across = X("at", f"Time ({time.unit}), from shortly before the first burst", "linear",
               limits=(0, end / time.divisor * 1.01))  # fmt: skip
    return Lines(
        "I/O rate of bursts after idle time",
        ("iops",),
        across,
        looks=lambda table: looks,
        linear=("iops",),
        note="above the panel: idle time before each burst" if idle else f"above: {phase}",
        marks=phases,
    ).draw(points.drop(columns="drive").assign(at=(points["end_s"] - start) / time.divisor, part=points["step"]))


def _spaced(wait: object) -> str:
    return _WAIT.sub(r"\1 \2", str(wait))


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
