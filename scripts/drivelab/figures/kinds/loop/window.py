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
from drivelab.figures.base.quantities import Quantity, format_exact, format_number, quantity, with_minus
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="window",
        title="Steady-state measurement window",
        caption=(
            "Values of a tracked variable in the measurement window, their average, the least-squares fit "
            "and two bands: the allowed range of the values (20 % of the average) and of the fit (10 %). "
            "Only the widths count, so a point may be outside a band although the rule is met. Both limits "
            "must hold for every tracked variable."
        ),
        tables=("steady_state",),
        when=("steady",),
        place=20,
        rows="loops",
        of_window=True,
    ),
)

_MOST_PANELS = 9
_BANDS = (("data", "max \N{MINUS SIGN} min", "#dcecf9"), ("slope", "rise of the fit", "#a9dcc8"))
_VALUES = 0.2
"""Left end of the values in the determination block, as a share of its width."""
_MEASURED, _ALLOWED = 0.7, 1.0
"""Right ends of the block's columns."""
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
    average = float(row["average"]) / scale.divisor
    axes.plot(
        rounds,
        values / scale.divisor,
        color=style.INK,
        marker="o",
        linestyle="none",
        markersize=7,
        label="measured",
        zorder=4,
        gid="values",
    )
    axes.axhline(average, color=style.INK, linewidth=1, label="average (middle of the bands)", gid="average")
    reach = float(np.abs(values / scale.divisor - average).max())
    for order, (name, rule, colour) in enumerate(_BANDS):
        half = float(row[f"allowed_{name}_excursion"]) / scale.divisor / 2
        share = f" ({200 * half / average:.3g} %)" if average else ""
        axes.axhspan(
            average - half,
            average + half,
            facecolor=colour,
            linewidth=0,
            zorder=0.1 + 0.1 * order,
            label=f"allowed {rule}{share}",
            gid=f"{name} band",
        )
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
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: format_number(value)))
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

    def write(x: float, line: int, text: str, colour: str = style.INK, **more: Any) -> None:
        block.text(
            x,
            1 - (line + 0.5) / _LINES,
            text,
            transform=block.transAxes,
            color=colour,
            va="center",
            fontsize=style.SMALL_PT,
            gid="determination",
            in_layout=False,
            **more,
        )

    slope, intercept = float(row["slope"]) / scale.divisor, float(row["intercept"]) / scale.divisor
    fit = f"{format_exact(slope)} · R {'-' if intercept < 0 else '+'} {format_exact(abs(intercept))}"
    drift = float(row["residual_drift_pct"])
    drifted = f"{format_percentage(drift, signed=True)} %" if isfinite(drift) else "unknown"
    facts = (
        (0, 0.0, "Average", f"{number('average')} {scale.unit}"),
        (1, 0.0, "Fit", with_minus(fit) if isfinite(slope) else "none, too few rounds"),
        (0, 0.54, "Residual drift", with_minus(drifted)),
    )
    for line, x, name, text in facts:
        write(x, line, name, colour=style.MUTED)
        if x:
            write(_ALLOWED, line, text, ha="right")
        else:
            write(_VALUES, line, text)
    write(0.0, 2, f"Excursion ({scale.unit})" if scale.unit else "Excursion", colour=style.MUTED)
    write(_MEASURED, 2, "measured", colour=style.MUTED, ha="right")
    write(_ALLOWED, 2, "allowed", colour=style.MUTED, ha="right")
    for line, (kind, rule, _) in enumerate(_BANDS, start=3):
        broken = float(row[f"measured_{kind}_excursion"]) > float(row[f"allowed_{kind}_excursion"])
        look = {"colour": style.ALARM, "weight": "bold"} if broken else {}
        write(0.0, line, f"{kind.capitalize()}, {rule}", colour=style.MUTED)
        write(_MEASURED, line, number(f"measured_{kind}_excursion"), ha="right", **look)
        write(_ALLOWED, line, number(f"allowed_{kind}_excursion"), ha="right")
