"""Values of one test over dates, firmwares or hosts, with the baseline and changes of level.

`drivelab trend` draws this figure itself, because it shows recordings of several studies.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drivelab.analysis.deltas.recordings import Floats
from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import AXES, Quantity, quantity, short_name
from drivelab.figures.base.words import say, tell
from drivelab.figures.kinds.drives.comparison import MARGIN

COLUMNS = ("point", "value", "low", "high", "recordings", "level")
"""Columns of the points: name, value, interval (NaN without one), number of recordings, level (NaN without one)."""
_HEIGHT_IN = 3.4
_MOST_TICKS = 8
_ROOM = 0.35
"""Free share of the axis above and below the values."""


@style.styled
def trend_line(
    points: pd.DataFrame,
    changes: Sequence[tuple[str, str]],
    *,
    title: str,
    subject: str,
    metric: str,
    unit: str,
    baseline: str,
    margin_pct: float,
    labels: tuple[bool, bool, str],
) -> Figure:
    """Draw the points of a test with their intervals, the margin around the baseline, and its changes of level.

    `points` has the COLUMNS in order, values in the unit of the metric's column. `changes` has the first point and a
    text of each change. `labels` says whether the data are reduced, whether the drives are virtual, and the clock.
    Raises ValueError if no point is the baseline.
    """
    if baseline not in set(points["point"]):
        raise ValueError(f"the baseline '{baseline}' is none of the points")
    figure = style.new_figure(title, height_in=_HEIGHT_IN)
    axes = figure.subplots()
    scale = quantity(metric, float(points["value"].max())) if metric in AXES else Quantity(short_name(metric), unit)
    shown = points.assign(**{name: points[name].astype(float) / scale.divisor
                             for name in ("value", "low", "high", "level")})  # fmt: skip
    places = _places(axes, list(shown["point"]))
    of_baseline = float(shown.loc[shown["point"] == baseline, "value"].iloc[0])
    axes.axhspan(of_baseline / (1 + margin_pct / 100), of_baseline * (1 + margin_pct / 100), color=MARGIN, zorder=0,
                 linewidth=0, gid="margin")  # fmt: skip
    axes.axhline(of_baseline, color=style.MUTED, linewidth=0.8, linestyle=":", zorder=1)
    colour = style.colours(1)[0]
    whiskers = shown[shown["low"].notna()]
    at = places[shown["low"].notna().to_numpy()]
    ax.whiskers(axes, whiskers["low"], whiskers["high"], at, upright=True, color=colour, linewidth=1.2,
                label="_interval")  # fmt: skip
    several = (shown["recordings"] > 1).to_numpy()
    for mask, face, name in ((several, colour, "several recordings"), (~several, "white", "single recording")):
        if mask.any():
            (line,) = axes.plot(places[mask], shown["value"][mask], linestyle="none", marker="o", color=colour,
                                markerfacecolor=face, gid="point", label=f"_{name}")  # fmt: skip
            say(line, [f"{row.point}, {row.recordings} recording{'s' if row.recordings > 1 else ''}"
                       for row in shown[mask].itertuples()])  # fmt: skip
    has_line = _levels(axes, shown, places)
    low, high = (np.nanmin(shown[["value", "low"]].to_numpy()), np.nanmax(shown[["value", "high"]].to_numpy()))
    low, high = min(low, of_baseline / (1 + margin_pct / 100)), max(high, of_baseline * (1 + margin_pct / 100))
    room = _ROOM * (high - low)
    axes.set_ylim(max(0.0, low - room), high + room)
    axes.set_ylabel(f"{scale.label if scale.unit else scale.name}\naxis not from 0")
    ax.plain_numbers(axes, "y")
    names = list(shown["point"])
    for point, words in changes:
        place = names.index(point)
        between = (places[place - 1] + places[place]) / 2 if place else places[0]
        axes.axvline(between, color=style.ALARM, linewidth=1.2, linestyle="--", gid="change")
        axes.annotate(words, (between, 1), (3, -3), xycoords=("data", "axes fraction"), textcoords="offset points",
                      va="top", fontsize=style.SMALL_PT, color=style.ALARM)  # fmt: skip
    _legend(figure, axes, bool(several.any()), bool((~several).any()), has_line, bool(changes), margin_pct)
    reduced, virtual, clock = labels
    style.label(figure, reduced=reduced, virtual=virtual, clock=clock, subject=subject)
    return figure


def _places(axes: Axes, names: list[str]) -> Floats:
    """Set the x axis and return the places of the points: their dates, or 0, 1, 2 … for other names."""
    try:
        places: Floats = np.array(date2num([date.fromisoformat(name) for name in names]))  # type: ignore[no-untyped-call]
    except ValueError:
        axes.set_xlim(-0.5, len(names) - 0.5)
        every = -(-len(names) // _MOST_TICKS)
        axes.set_xticks(range(0, len(names), every), [name[:18] for name in names[::every]])
        tell(axes.xaxis, lambda x: names[min(max(round(x), 0), len(names) - 1)])
        return np.arange(len(names), dtype=float)
    locator = AutoDateLocator(minticks=2, maxticks=_MOST_TICKS)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    tell(axes.xaxis, lambda x: names[int(np.abs(np.subtract(places, x)).argmin())])
    room = max(1.0, 0.03 * float(np.ptp(places)))
    axes.set_xlim(places.min() - room, places.max() + room)
    return places


def _levels(axes: Axes, shown: pd.DataFrame, places: Floats) -> bool:
    """Draw a line at each level that two or more points have; return whether there is any."""
    known = shown["level"].duplicated(keep=False) & shown["level"].notna()
    for _, part in shown[known].groupby("level", sort=False):
        at = places[shown.index.get_indexer(part.index)]
        axes.plot([at.min(), at.max()], [part["level"].iloc[0]] * 2, color=style.INK, linewidth=1.4, gid="level",
                  label="_level")  # fmt: skip
    return bool(known.any())


def _legend(
    figure: Figure, axes: Axes, several: bool, single: bool, has_line: bool, changed: bool, margin_pct: float
) -> None:
    colour = style.colours(1)[0]
    handles = [
        *([Line2D([], [], linestyle="none", marker="o", color=colour, label="mean of recordings")] if several else []),
        *([Line2D([], [], linestyle="none", marker="o", color=colour, markerfacecolor="white",
                  label="single recording")] if single else []),
        Patch(color=MARGIN, label=f"baseline ± {margin_pct:g} %"),
        *([Line2D([], [], color=style.INK, label="level")] if has_line else []),
        *([Line2D([], [], color=style.ALARM, linestyle="--", label="change")] if changed else []),
    ]  # fmt: skip
    ax.legend(figure, axes, handles=handles)
