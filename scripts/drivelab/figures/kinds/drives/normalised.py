"""Bars of each drive's performance relative to the basis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from drivelab.analysis.deltas.inference import one_of_each
from drivelab.analysis.verdict import CANNOT_TELL, DECIDED
from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import short_name
from drivelab.figures.base.words import say, tell
from drivelab.figures.kinds.drives import delta_rows
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="normalised",
        title="Relative to the basis",
        caption=(
            "Performance of each drive as a multiple of the basis, cell by cell. More is better for every "
            "metric, as times are inverted. Whiskers are confidence intervals."
        ),
        tables=("deltas",),
        status="summary",
        when=("comparison",),
        place=370,
    ),
)

_OF_A_VALUE = ("comparison", "cell_label", "metric")
_LOG_FROM = 6.0
"""From this multiple of the basis on, the axis is logarithmic, as a linear axis would hide the other bars."""
_WIDE = 12.0
"""A logarithmic axis with a larger span has ticks only at powers of ten."""
_NUMBERS = 1.5
"""Axis length as a multiple of the length of the bars: the last third holds the numbers."""
_CUT = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE}"
"""Marks the number of a bar that is cut off."""
_TIMES = "\N{MULTIPLICATION SIGN}"
_THICKNESS = 0.84
_BAR_IN = 0.16
_PALE = 0.35
"""Strength of the colour of a bar without a verdict."""
_HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||")
"""Hatches that tell drives apart without colour; of lines, as dots take a hundred times the bytes."""


@style.styled
def normalised(deltas: pd.DataFrame) -> Figure:
    """Draw each drive's multiple of the basis in each cell; more is better, also for times.

    The one or two most informative metrics are side by side, but not two that say the same; whiskers are confidence
    intervals. If values are far from the basis, bars begin at the basis on a logarithmic axis. Bars without a verdict
    are pale, do not set the scale and may be cut off before the numbers. Raises ValueError for unsuitable tables.
    """
    basis = delta_rows.checked(deltas)
    deltas = deltas[deltas["delta_pct"].notna()]
    if deltas.empty:
        raise ValueError("table 'deltas' has no delta to show")
    deltas = deltas.iloc[one_of_each(zip(*(deltas[name] for name in _OF_A_VALUE), strict=True))]
    metrics = delta_rows.by_weight(deltas)[:2]
    looks = delta_rows.looks(deltas)
    shown = deltas[deltas["metric"].isin(metrics)]
    cells, names = list(shown["cell_label"].drop_duplicates()), delta_rows.names(shown["cell_label"])
    ratios = {column: 1 + shown[column].to_numpy(dtype=float) / 100
              for column in ("delta_pct", "interval_low_pct", "interval_high_pct")}  # fmt: skip
    shown = shown.assign(ratio=ratios["delta_pct"], low=ratios["interval_low_pct"], high=ratios["interval_high_pct"],
                         decided=shown["verdict"].isin(DECIDED))  # fmt: skip
    height_in = max(3.0, 1.7 + (_BAR_IN * max(len(looks), names.lines) + 0.08) * len(cells))
    figure = style.new_figure(f"Relative to {basis} ({basis} = 1.0{_TIMES})", height_in=height_in)
    if names.shared:
        style.note(figure, f"each cell: {names.shared}")
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    fills: dict[str, dict[str, Any]] = {
        drive: {"facecolor": look.colour, "hatch": _HATCHES[place % len(_HATCHES)], "edgecolor": "white",
                "linewidth": 0.5, "label": drive}
        for place, (drive, look) in enumerate(looks.items())
    }  # fmt: skip
    pale = {
        drive: {**fill, "facecolor": _tint(fill["facecolor"]), "edgecolor": fill["facecolor"],
                "label": f"{drive}, {CANNOT_TELL}"}
        for drive, fill in fills.items()
    }  # fmt: skip
    for axes, metric in zip(panels, metrics, strict=True):
        part = shown[shown["metric"] == metric]
        log, end = _scale(axes, part)
        for place, drive in enumerate(looks):
            y = (place - (len(looks) - 1) / 2) * _THICKNESS / len(looks)
            for fill, decided in ((fills[drive], True), (pale[drive], False)):
                rows = part[(part["comparison"] == drive) & (part["decided"] == decided)]
                if len(rows):
                    _bars(axes, rows, y, _THICKNESS / len(looks), fill, cells, log, end)
        name = short_name(metric)
        axes.set_xlabel(f"{name[0].upper()}{name[1:]}, better →\n(times {basis}{', log scale' if log else ''})")
        axes.grid(visible=False, axis="y")
    panels[0].set_yticks(range(len(cells)), [names.of_cell[cell] for cell in cells])
    tell(panels[0].yaxis, lambda place: cells[min(round(place), len(cells) - 1)])
    panels[0].set_ylim(len(cells) - 0.5, -0.5)
    handles = [Patch(**fill) for fill in fills.values()]
    if not shown["decided"].all():
        handles.append(Patch(facecolor=_tint(to_rgb(style.MUTED)), edgecolor=style.MUTED, label=f"pale: {CANNOT_TELL}"))
    ax.legend(figure, panels[0], handles=handles)
    return figure


def _tint(colour: style.Colour) -> style.Colour:
    """Return a paler shade of a colour that still differs from white paper."""
    red, green, blue = (1 - _PALE * (1 - part) for part in colour)
    return red, green, blue


def _scale(axes: Axes, part: pd.DataFrame) -> tuple[bool, float]:
    """Set limits and ticks for the bars with a verdict, or for all bars if none has one.

    Returns whether the axis is logarithmic, and where bars are cut off.
    """
    part = part[part["decided"]] if part["decided"].any() else part
    ratios = part["ratio"].to_numpy(dtype=float)
    ends = part[["ratio", "low", "high"]].to_numpy(dtype=float)
    ends = ends[np.isfinite(ends) & (ends > 0)]
    log = bool(ratios.max() >= _LOG_FROM or ratios.min() <= 1 / _LOG_FROM)
    highest = min(float(ends.max()), 3 * float(ratios.max()))
    if log:
        axes.set_xscale("log")
        axes.set_xlim(min(0.8, max(float(ends.min()), float(ratios.min()) / 3) / 2), max(1.25, highest) * 1.2)
        low, end = axes.get_xlim()
        high = end * (end / low) ** (_NUMBERS - 1)
        axes.set_xlim(low, high)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < _WIDE else (1,)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        end = max(1.0, highest)
        axes.set_xlim(0, end * _NUMBERS)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}{_TIMES}"))
    axes.axvline(1.0, color=style.INK, linewidth=1.2, gid="basis")
    return log, end


def _bars(axes: Axes, part: pd.DataFrame, shift: float, thickness: float, fill: dict[str, Any],
          cells: list[str], log: bool, end: float) -> None:  # fmt: skip
    y = np.array([cells.index(cell) for cell in part["cell_label"]], dtype=float) + shift
    ratio, start = part["ratio"].to_numpy(dtype=float), 1.0 if log else 0.0
    least = axes.get_xlim()[0]
    to_the_numbers = Rectangle((least, 0), end - least, 1, transform=axes.get_xaxis_transform())
    bars = axes.barh(y, ratio - start, thickness * 0.92, left=start, gid="bar", **fill)
    say(bars, [f"Interval: {low:.4g}{_TIMES} to {high:.4g}{_TIMES}" if low == low and high == high else "No interval"
               for low, high in part[["low", "high"]].to_numpy(dtype=float)])  # fmt: skip
    for bar in bars:
        if bar.get_x() + bar.get_width() > end:
            bar.set_clip_path(to_the_numbers)
    low, high = (part[column].to_numpy(dtype=float).clip(least, end) for column in ("low", "high"))
    ax.whiskers(axes, low, high, y, color=style.INK, linewidth=1.2, label=f"{fill['label']}, interval")
    for place, value in zip(y, ratio, strict=True):  # in a column beyond bars and whiskers
        number = f"{_CUT if value > end else ''}{value:.3g}{_TIMES}"
        axes.annotate(number, (1.0, place), (-3, 0), xycoords=("axes fraction", "data"), ha="right",
                      textcoords="offset points", va="center", fontsize=style.SMALL_PT, gid="number")  # fmt: skip
