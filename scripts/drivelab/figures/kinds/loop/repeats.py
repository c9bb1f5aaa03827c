"""Repeats: value of each cell, and the deviations of its rounds."""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, selection, style
from drivelab.figures.base.quantities import format_number, quantity, with_minus
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="repeats",
        title="Rounds of each cell",
        caption=(
            "Value of each cell (left) and deviations of its rounds (right). Filled dots count; hollow dots "
            "are cold rounds, which do not. A cell's value is the average of a steady-state window, else the "
            "median of an odd number of counted rounds. The closer the dots, the better the value repeats."
        ),
        tables=("cells", "steady_state"),
        when=("repeats",),
        place=50,
        rows="loops",
    ),
)

_ROW_IN = 0.27
_LEAST_REACH_PCT = 1.0


@style.styled
def repeats(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw each cell's median or window average (left) and its rounds as deviations (right).

    Filled dots count, hollow ones were cold. `cells` holds one drive and run; `steady_state` may be empty.
    Raises ValueError for unsuitable tables.
    """
    loop = counted.loop_cells(cells)
    used = counted.counted(loop, steady_state)
    centre = counted.values(loop, steady_state, [metric], ["cell_label"]).set_index("cell_label")[metric]
    scale = quantity(metric, float(centre.max()))
    names = list(centre.index)
    height_in = 1.7 + _ROW_IN * max(len(names), 4)
    figure = style.new_figure(f"{scale.name} of each cell, round by round", height_in=height_in)
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.0, 1.25])
    shown = [float(value) / scale.divisor for value in centre]
    _values(left, shown, scale.label, counted.what(steady_state).capitalize())
    cold = loop[loop["cold"].astype(bool)]
    for part, gid, face in ((cold, "cold", "white"), (used, "counted", style.colours(1)[0])):
        if part.empty:
            continue
        deviation = [100 * (float(value) / float(centre[label]) - 1)
                     for label, value in zip(part["cell_label"], part[metric], strict=True)]  # fmt: skip
        right.plot(deviation, [names.index(label) for label in part["cell_label"]], linestyle="none", marker="o",
                   markersize=5.5, markerfacecolor=face, markeredgecolor=style.colours(1)[0], alpha=0.85,
                   label="cold round, not counted" if gid == "cold" else "counted round", gid=gid)  # fmt: skip
    right.axvline(0, color=style.INK, linewidth=1)
    _deviations(right)
    left.set_yticks(range(len(names)), names)
    left.set_ylim(len(names) - 0.4, -0.6)
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, right)
    return figure


def _values(axes: Axes, values: list[float], label: str, what: str) -> None:
    log = ax.is_wide(values)
    places = range(len(values))
    if log:  # bars need a zero
        axes.plot(values, places, linestyle="none", marker="D", markersize=6, color=style.INK, gid="value")
        ax.log_axis(axes, "x", min(values) / 1.5, max(values) * 8)
    else:
        axes.barh(places, values, 0.62, color="#cfdcea", gid="value")
        axes.set_xlim(0, max(values) * 1.28 or 1.0)
        ax.plain_numbers(axes, "x")
    for place, value in zip(places, values, strict=True):
        axes.annotate(format_number(value), (value, place), (6, 0), textcoords="offset points", va="center",
                      fontsize=style.SMALL_PT, gid="number")  # fmt: skip
    axes.set_xlabel(f"{label}{', log scale' if log else ''}\n{what}")
    axes.grid(visible=False, axis="y")


def _deviations(axes: Axes) -> None:
    low, high = axes.get_xlim()
    if max(-low, high) < _LEAST_REACH_PCT:  # else tiny differences would look large
        axes.set_xlim(-_LEAST_REACH_PCT, _LEAST_REACH_PCT)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: with_minus(f"{value:+.3g}") if value else "0"))
    axes.set_xlabel("Rounds: from that value (%)")
