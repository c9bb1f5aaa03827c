"""Forest plot of performance deltas between drives, with intervals and verdicts."""

from __future__ import annotations

from math import isfinite

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from drivelab.analysis.verdict import BETTER, CANNOT_TELL, DELTA_VERDICTS, NOT_COMPARED, SAME, WORSE
from drivelab.core.units import format_percentage
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import with_minus
from drivelab.figures.base.words import say, tell
from drivelab.figures.kinds.drives import delta_rows
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="comparison",
        title="Comparison of the drives",
        caption=(
            "Delta of each drive against the basis for each cell, for as many metrics as fit; metrics "
            "that say the same share a row. Positive is better for speeds and for times. Whiskers are confidence "
            "intervals. The band is the margin within which drives are the same. Hollow dots have no verdict. The "
            "verdict of each cell is on the right."
        ),
        tables=("deltas",),
        status="summary",
        when=("comparison",),
        place=360,
    ),
)

_COLOURS = {
    **dict.fromkeys(BETTER, "#0072b2"),
    **dict.fromkeys(WORSE, "#d55e00"),
    SAME: "#4d4d4d",
    CANNOT_TELL: "#7a7a7a",
}
"""Okabe and Ito's blue and vermilion, which colour-blind readers tell apart, and two greys."""
_LOG_FROM_PCT = 400.0
_LINE_IN = 0.17
_LETTER_PT, _GAP_PT = 5.9, 6.0
"""Width of a digit in a column of numbers, and gap before each column."""
_MARGINS = 1.4
"""The axis reaches at least this many margins, so that the ends of the band are visible."""
_LONGEST_NAME = 16
"""Maximum length of a drive's name beside its verdict; longer names are only in the legend."""
MARGIN = "#e9e4d4"
"""The band of the margin. A page with a dark ground shows it dark: see `shown` in report/templates/charts.js."""


@style.styled
def comparison(deltas: pd.DataFrame) -> Figure:
    """Draw the delta of each drive against the basis, by cell and metric; positive is better.

    A dot is the delta, its whisker the confidence interval, its colour the verdict, which is also on the right. Hollow
    dots have no verdict. The band is the margin within which drives are the same. Raises ValueError for unsuitable
    tables, more than one basis and unknown verdicts.
    """
    basis = delta_rows.checked(deltas)
    if unknown := set(deltas["verdict"]) - set(DELTA_VERDICTS):
        raise ValueError(f"table 'deltas' has the unknown verdict(s) {', '.join(sorted(map(str, unknown)))}")
    shown = delta_rows.most_telling(deltas)
    left_out = deltas["metric"].nunique() - shown["metric"].nunique()
    looks, cells = delta_rows.looks(shown), delta_rows.names(shown["cell_label"])
    rows = delta_rows.rows(shown, max(len(looks), cells.lines))
    figure = style.new_figure(f"Delta against {basis}", height_in=max(3.0, 1.9 + _LINE_IN * rows.lines))
    if left_out:
        style.note(figure, f"{left_out} more metric{'s are' if left_out > 1 else ' is'} in the tables")
    if cells.shared:
        style.note(figure, f"each cell: {cells.shared}")
    axes = figure.subplots()
    places = list(looks)
    offsets = np.arange(len(places)) - (len(places) - 1) / 2
    shown = shown.assign(
        y=[rows.of_cell[key] for key in shown[delta_rows.KEY].itertuples(index=False, name=None)]
        + offsets[[places.index(drive) for drive in shown["comparison"]]]
    )
    margin_pct = float(str(selection.require_one(deltas, "margin_pct", "deltas")))
    ends = shown[["delta_pct", "interval_low_pct", "interval_high_pct"]].to_numpy(dtype=float)
    _delta_axis(axes, basis, ends, margin_pct)
    axes.axvspan(-margin_pct, margin_pct, color=MARGIN, zorder=0, linewidth=0, gid="margin")
    several = len(looks) > 1
    named = several and max(map(len, looks)) <= _LONGEST_NAME
    for (drive, verdict), part in shown.groupby(["comparison", "verdict"], sort=False):
        if verdict != NOT_COMPARED:
            _dots(axes, part, looks[drive], str(verdict), f"{drive}, {verdict}")
    numbers = [f"{format_percentage(delta, signed=True)} %" if isfinite(delta) else "" for delta in shown["delta_pct"]]
    width_pt = _LETTER_PT * max(map(len, numbers))
    for row, number in zip(shown.itertuples(), numbers, strict=True):
        drive = f", {row.comparison}" if named else ""
        _say(axes, float(row.y), number, f"{row.verdict}{drive}", width_pt)
    names = {**rows.headings, **{line: cells.of_cell[key[-1]] for key, line in rows.of_cell.items()}}
    axes.set_yticks(list(names), list(names.values()))
    for line, tick in zip(names, axes.get_yticklabels(), strict=True):
        tick.set_fontweight("bold" if line in rows.headings else "normal")
    tell(axes.yaxis, rows.cell_at)
    axes.set_ylim(rows.lines, 0)
    axes.grid(visible=not several, axis="y")
    ax.legend(figure, axes, handles=_handles(looks if several else {}, shown))
    return figure


def _delta_axis(axes: Axes, basis: str, values: np.ndarray, margin_pct: float) -> None:
    """Limit the x axis to show dots, whiskers and margin; an interval without an end reaches the edge."""
    finite = values[np.isfinite(values)]
    least = _MARGINS * margin_pct
    low, high = float(finite.min(initial=-least)), float(finite.max(initial=least))
    log = max(high, -low) >= _LOG_FROM_PCT
    if log:
        axes.set_xscale("symlog", linthresh=10)
        axes.set_xlim(low * 2 if low < -least else low, high * 2 if high > least else high)
    else:
        room = 0.05 * (high - low) or 1.0
        axes.set_xlim(low - room, high + room)
    axes.axvline(0, color=style.INK, linewidth=1)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: with_minus(f"{value:+,.4g}" if value else "0")))
    axes.set_xlabel(f"Delta against {basis} (%){', log scale beyond ±10' if log else ''}, better →")


def _dots(axes: Axes, part: pd.DataFrame, look: overlay.Look, verdict: str, name: str) -> None:
    """Draw the deltas of one drive and verdict as two lines: all whiskers, then all dots."""
    colour = _COLOURS[verdict]
    low, high = axes.get_xlim()
    ends = part[part["interval_low_pct"].notna() & part["interval_high_pct"].notna()]
    ax.whiskers(axes, ends["interval_low_pct"].clip(lower=low), ends["interval_high_pct"].clip(upper=high), ends["y"],
                color=colour, linewidth=1.8, label=f"{name}, interval")  # fmt: skip
    face = "white" if verdict == CANNOT_TELL else colour
    (dots,) = axes.plot(part["delta_pct"], part["y"], linestyle="none", marker=look.marker, markersize=6,
                        markeredgecolor=colour, markerfacecolor=face, gid=verdict, label=name)  # fmt: skip
    say(dots, [_interval(*ends) for ends in part[["interval_low_pct", "interval_high_pct"]].to_numpy(dtype=float)])


def _interval(low: float, high: float) -> str:
    return with_minus(f"Interval: {low:+,.4g} to {high:+,.4g} %") if low == low and high == high else "No interval"


def _say(axes: Axes, y: float, number: str, verdict: str, width_pt: float) -> None:
    """Write number and verdict in separate columns beside the panel; the first is `width_pt` wide."""
    end_pt = _GAP_PT + width_pt
    for x_pt, text, ha, gid in ((end_pt, number, "right", "value"), (end_pt + _GAP_PT, verdict, "left", "verdict")):
        axes.annotate(text, (1.0, y), (x_pt, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha=ha, va="center", color=style.INK, fontsize=style.SMALL_PT, gid=gid,
                      annotation_clip=False)  # fmt: skip


def _handles(looks: dict[str, overlay.Look], shown: pd.DataFrame) -> list[Artist]:
    """Return the legend entries: drives if there are several, the verdicts that occur, and the margin."""
    handles: list[Artist] = [
        Line2D([], [], marker=look.marker, color=style.INK, linestyle="none", label=drive)
        for drive, look in looks.items()
    ]
    for verdict, colour in _COLOURS.items():
        if (shown["verdict"] == verdict).any():
            face = "white" if verdict == CANNOT_TELL else colour
            handles.append(Line2D([], [], marker="o", color=colour, markerfacecolor=face, label=verdict))
    margin_pct = float(shown["margin_pct"].iloc[0])
    return [*handles, Patch(facecolor=MARGIN, label=f"margin ±{margin_pct:g} %")]
