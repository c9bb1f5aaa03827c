"""Duration of each run of an application, by drive."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import Quantity, elapsed
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="application_durations",
        title="Duration of the application",
        caption=(
            "Duration of each run of the application on each drive. Hollow dots are cold runs, which do not "
            "count. Less is better. The processor takes much of the time, so drives differ less than in "
            "tests of the drive alone."
        ),
        tables=("application_runs",),
        when=("application", "drives_application"),
        place=350,
    ),
)

_LINE_IN = 0.3


@style.styled
def application_durations(application_runs: pd.DataFrame) -> Figure:
    """Draw the duration of each run, a row per application, phase and drive; less is better.

    Filled dots count, hollow ones were cold. The bar is the median of the counted runs, with their number on the right.
    Raises ValueError for unsuitable tables.
    """
    selection.require_one(application_runs, "measurement", "application_runs")
    runs = application_runs.assign(what=[_name(run) for run in application_runs.itertuples()])
    looks, whats = overlay.looks(runs["drive"]), list(runs["what"].drop_duplicates())
    lines = [(what, drive) for what in whats for drive in looks
             if ((runs["what"] == what) & (runs["drive"] == drive)).any()]  # fmt: skip
    time = Quantity("Duration", *_unit(float(runs["duration_s"].max())))
    figure = style.new_figure("Duration of the application", height_in=max(2.8, 1.8 + _LINE_IN * len(lines)))
    if (sources := runs["simulated_from"].dropna().unique()).size:
        style.note(figure, f"no application ran; instead, trace {', '.join(sources)} was replayed")
    axes = figure.subplots()
    for y, (what, drive) in enumerate(lines):
        part, look = runs[(runs["what"] == what) & (runs["drive"] == drive)], looks[drive]
        counted = part[part["counted"].astype(bool)]
        for rows, face, gid in ((part[~part["counted"].astype(bool)], "white", "cold"), (counted, look.colour, "run")):
            if len(rows):
                axes.plot(rows["duration_s"] / time.divisor, np.full(len(rows), float(y)), linestyle="none",
                          marker=look.marker, markersize=6.5, markeredgecolor=look.colour, markerfacecolor=face,
                          alpha=0.85, gid=gid, label=f"{drive}, {'cold' if gid == 'cold' else 'counts'}")  # fmt: skip
        if len(counted):
            median = float(counted["duration_s"].median()) / time.divisor
            axes.plot([median, median], [y - 0.36, y + 0.36], color=style.INK, linewidth=2, gid="median",
                      label=f"{drive}, median")  # fmt: skip
            axes.annotate(f"{median:.4g} {time.unit} ({len(counted)})", (1.0, y), (6, 0), va="center",
                          xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=style.SMALL_PT,
                          gid="number", annotation_clip=False)  # fmt: skip
    axes.set_yticks(range(len(lines)), [drive if len(whats) == 1 else f"{what}, {drive}" for what, drive in lines])
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(0, float(runs["duration_s"].max()) / time.divisor * 1.06)
    axes.set_xlabel(f"{time.label}, ← better" + (f": {whats[0]}" if len(whats) == 1 else ""))
    axes.grid(visible=False, axis="y")
    ax.legend(figure, axes, handles=_handles(runs))
    return figure


def _name(run: object) -> str:
    """Return the application, with the turn of a repeated step."""
    value = run.phase_value  # type: ignore[attr-defined]
    application = str(run.application)  # type: ignore[attr-defined]
    return f"{application}, {run.phase} {value}" if isinstance(value, str) else application  # type: ignore[attr-defined]


def _unit(longest_s: float) -> tuple[str, float]:
    if longest_s < 1:
        return "ms", 1e-3
    time = elapsed(longest_s)
    return time.unit, time.divisor


def _handles(runs: pd.DataFrame) -> list[Line2D]:
    dot = {"marker": "o", "linestyle": "none", "color": style.MUTED}
    handles = [Line2D([], [], label="counted run", **dot)]  # type: ignore[arg-type]
    if (~runs["counted"].astype(bool)).any():
        handles.append(Line2D([], [], markerfacecolor="white", label="cold run, not counted", **dot))  # type: ignore[arg-type]
    return [*handles, Line2D([], [], color=style.INK, linewidth=2, label="median (number of counted runs)")]
