"""Steady-state window: values, allowed bands, least-squares fit and the determining numbers."""

from __future__ import annotations

from math import isclose, isfinite
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from drivelab.core.units import format_percentage
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import NUMBER, Quantity, format_exact, quantity, with_minus
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "window", "Steady-state measurement window",
        "Values of a tracked variable in the measurement window, their average, the least-squares fit and two bands: "
        "the allowed range of the values (20 % of the average) and of the fit (10 %). Only the widths count, so a "
        "point may be outside a band although the rule is met. Both limits must hold for every tracked variable.",
        tables=("steady_state",), when=("steady",), place=20, rows="loops", of_window=True,
    ),
)  # fmt: skip

_MOST_PANELS = 9
_BANDS = (("data", "max \N{MINUS SIGN} min", "#dcecf9"), ("slope", "rise of the fit", "#a9dcc8"))
_COLUMNS = {0.0: "left", 0.2: "left", 0.54: "left", 0.7: "right", 1.0: "right"}
"""Places of the texts in the determination block, as shares of its width, and their alignment."""
_LINES = 5
"""Number of lines of the block."""


@style.styled
def window(steady_state: pd.DataFrame) -> Figure:
    """Draw each tracked variable's window, bands, fit `m * R + b` (R: round) and determination block.

    Each row of the table has a panel. The axes are limited to the neighbourhood of the
    average; the right axis has the deviation from it. Raises ValueError for unsuitable tables and a fit that misses its
    own values.
    """
    selection.require(steady_state, "steady_state")
    if "recording" in steady_state:
        selection.require_one(steady_state, "recording", "steady_state")
    shown, names = steady_state.iloc[:_MOST_PANELS], _names(steady_state)
    several = len(shown) > 1
    title = "Steady-state windows" if several else f"Steady-state window, {names[0]}"
    figure = style.new_figure(title, height_in=4.7 if not several else 1.1 + 3.4 * len(shown))
    if len(steady_state) > len(shown):
        style.note(figure, f"the first {len(shown)} of {len(steady_state)} variables; all are in the tables")
    panels = figure.subplots(2 * len(shown), 1, height_ratios=[3.0, 1.35] * len(shown), squeeze=False)[:, 0]
    for place, (_, row) in enumerate(shown.iterrows()):
        axes, block = panels[2 * place : 2 * place + 2]
        scale = _panel(axes, row)
        if several:
            axes.set_title(names[place], fontsize=style.TEXT_PT, loc="left")
        _determination(block, row, scale)
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, panels[0])
    return figure


def _names(steady_state: pd.DataFrame) -> list[str]:
    """Return the name of each row: its variable, with metric and step where needed to tell rows apart.

    Raises ValueError for two rows of the same name.
    """
    names = steady_state["variable"].astype(str)
    for column, words in (("metric", "{}"), ("step", "step {}")):
        if names.duplicated().any() and column in steady_state:
            names = names + ", " + steady_state[column].map(words.format)
    if names.duplicated().any():
        raise ValueError(f"table 'steady_state' holds {len(names)} windows ({', '.join(names)}); expected one of each")
    return [str(name) for name in names]


def _panel(axes: Axes, row: pd.Series) -> Quantity:
    values = np.asarray(row["values"], dtype=float)
    rounds = np.arange(int(row["window_start"]), int(row["window_end"]) + 1)
    if len(values) != len(rounds):
        raise ValueError(f"table 'steady_state' has {len(values)} values for a window of {len(rounds)} rounds")
    scale = quantity(str(row["metric"]), float(values.max()))
    average, shown = float(row["average"]) / scale.divisor, values / scale.divisor
    axes.plot(rounds, shown, color=style.INK, marker="o", linestyle="none", markersize=7, label="measured", zorder=4,
              gid="values")  # fmt: skip
    axes.axhline(average, color=style.INK, linewidth=1, label="average (middle of the bands)", gid="average")
    reach = float(np.abs(shown - average).max())
    for order, (name, rule, colour) in enumerate(_BANDS):
        half = float(row[f"allowed_{name}_excursion"]) / scale.divisor / 2
        share = f" ({200 * half / average:.3g} %)" if average else ""
        axes.axhspan(average - half, average + half, facecolor=colour, linewidth=0, zorder=0.1 + 0.1 * order,
                     label=f"allowed {rule}{share}", gid=f"{name} band")  # fmt: skip
        reach = max(reach, half)
    if isfinite(row["slope"]):
        ends = rounds[[0, -1]]
        fit = (float(row["slope"]) * ends + float(row["intercept"])) / scale.divisor
        if not isclose(fit.mean(), average, rel_tol=1e-3):
            raise ValueError("table 'steady_state': slope and intercept do not fit the average; R is the round number")
        axes.plot(ends, fit, color=style.ALARM, linestyle="--", label="fit", zorder=3, gid="fit")
    _deviation_axis(axes, average, reach * 1.15 or 1.0)
    axes.set_ylabel(scale.label)
    ax.round_axis(axes, int(rounds[0]), int(rounds[-1]))
    return scale


def _deviation_axis(axes: Axes, average: float, reach: float) -> None:
    axes.set_ylim(average - reach, average + reach)
    ax.write(axes.yaxis, NUMBER)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7))
    if average:
        right = axes.secondary_yaxis(
            "right",
            functions=(lambda y: 100 * (np.divide(y, average) - 1), lambda pct: average * (1 + np.divide(pct, 100))),
        )
        right.set_ylabel("From the average (%)")
        right.yaxis.set_major_formatter(FuncFormatter(lambda value, _: with_minus(f"{value:+.3g}") if value else "0"))


def _determination(block: Axes, row: pd.Series, scale: Quantity) -> None:
    """Write the block that the PTS prints under its window; violated limits are red."""
    block.axis("off")

    def number(column: str) -> str:
        value = float(row[column]) / scale.divisor
        return format_exact(value) if isfinite(value) else "none"

    slope, intercept = float(row["slope"]) / scale.divisor, float(row["intercept"]) / scale.divisor
    fit = f"{format_exact(slope)} · R {'-' if intercept < 0 else '+'} {format_exact(abs(intercept))}"
    drift = float(row["residual_drift_pct"])
    names = {
        (0, 0.0): "Average", (1, 0.0): "Fit", (0, 0.54): "Residual drift", (2, 0.7): "measured", (2, 1.0): "allowed",
        (2, 0.0): f"Excursion ({scale.unit})" if scale.unit else "Excursion",
        **{(line, 0.0): f"{kind.capitalize()}, {rule}" for line, (kind, rule, _) in enumerate(_BANDS, start=3)},
    }  # fmt: skip
    numbers = {
        (0, 0.2): f"{number('average')} {scale.unit}",
        (1, 0.2): with_minus(fit) if isfinite(slope) else "none, too few rounds",
        (0, 1.0): f"{format_percentage(drift, signed=True)} %" if isfinite(drift) else "unknown",
        **{(line, place): number(f"{what}_{kind}_excursion") for line, (kind, *_) in enumerate(_BANDS, start=3)
           for what, place in (("measured", 0.7), ("allowed", 1.0))},
    }  # fmt: skip
    broken = {line for line, (kind, *_) in enumerate(_BANDS, start=3)
              if row[f"measured_{kind}_excursion"] > row[f"allowed_{kind}_excursion"]}  # fmt: skip
    for (line, place), text in (names | numbers).items():
        is_number = (line, place) in numbers
        look: dict[str, Any] = {"color": style.INK if is_number else style.MUTED}
        if line in broken and place == 0.7:
            look = {"color": style.ALARM, "weight": "bold"}
        block.text(place, 1 - (line + 0.5) / _LINES, text, transform=block.transAxes, ha=_COLUMNS[place], va="center",
                   fontsize=style.SMALL_PT, gid="determination", in_layout=False, **look)  # fmt: skip
