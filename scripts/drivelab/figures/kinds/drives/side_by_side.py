"""Bars of the measured values of all drives side by side, workload by workload.

The report draws this figure itself, because it shows the headline tests of all measurements of a study.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drivelab.core.units import format_factor
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, style
from drivelab.figures.base.quantities import AXES, Quantity, quantity, short_name
from drivelab.figures.base.words import say, tell

COLUMNS = ("workload", "metric", "unit", "lower_is_better", "drive", "value", "interval_low", "interval_high")
"""Columns of the values, beside the labels `reduced`, `virtual`, `clock`."""
_WIDTH_IN = 4.8
"""Narrower than other figures, to fit beside a table and to stay readable on a phone."""
_BAR_IN, _GAP_IN, _AXIS_IN, _HEADER_IN = 0.19, 0.13, 0.45, 0.75
_BARS = 0.9
"""Height of a bar, as a share of its row."""
_NUMBERS = 1.24
"""Axis length as a multiple of the longest bar: the rest holds the numbers."""
_LETTERS = 24
"""Longest line of a workload's name."""


@style.styled
def side_by_side(values: pd.DataFrame) -> Figure:
    """Draw a bar with its interval for each drive and workload, a panel for each metric, the best drive first.

    `values` has the COLUMNS and labels; rows are in the order of the workloads. The order of the drives is the same in
    all groups: by the geometric mean of their shares of the best value. Raises ValueError for values without rows.
    """
    if values.empty:
        raise ValueError("there are no values to show side by side")
    looks = overlay.looks(values["drive"])
    drives = best_first(values)
    panels = [part for _, part in values.groupby("metric", sort=False)]
    heights = [sum(_rows_in(part, workload) for workload in _workloads(part)) for part in panels]
    height_in = _HEADER_IN + _AXIS_IN * len(panels) + sum(heights)
    figure = style.new_figure("Measured values", height_in=height_in)
    figure.set_size_inches(_WIDTH_IN, height_in)
    every_axes = figure.subplots(len(panels), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, part in zip(every_axes, panels, strict=True):
        _panel(axes, part, drives, looks)
    if len(drives) > 1:
        ax.legend(figure, figure.axes[0], handles=[Patch(color=looks[drive].colour, label=drive) for drive in drives])
    style.label_by(figure, values, "best drive first" if len(drives) > 1 else drives[0])
    return figure


def best_first(values: pd.DataFrame) -> list[str]:
    """Return the drives by the geometric mean of their shares of the best value of each workload, best first."""
    speed = values["value"].where(~values["lower_is_better"].astype(bool), 1 / values["value"])
    best = speed.groupby([values["workload"], values["metric"]]).transform("max")
    shares = np.log(speed / best).groupby(values["drive"], sort=False).mean()
    return list(map(str, shares.sort_values(ascending=False, kind="stable").index))


def _workloads(part: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(part["workload"]))


def _lines(workload: str) -> list[str]:
    return textwrap.wrap(workload, _LETTERS, break_long_words=False) or [""]


def _rows_in(part: pd.DataFrame, workload: str) -> float:
    """Return the height of one group of bars, which also holds the lines of its name."""
    bars = int((part["workload"] == workload).sum())
    return max(_BAR_IN * bars, 0.18 * len(_lines(workload))) + _GAP_IN


def _panel(axes: Axes, part: pd.DataFrame, drives: Sequence[str], looks: dict[str, overlay.Look]) -> None:
    """Draw the bars of one metric, workload by workload from the top; the y axis is in inches."""
    metric, unit = str(part["metric"].iloc[0]), str(part["unit"].iloc[0])
    ends = part[["value", "interval_high"]].max(axis=None)
    # A score relative to the basis has no unit.
    known = metric in AXES and bool(unit)
    scale = quantity(metric, float(part["value"].min())) if known else Quantity(short_name(metric), unit)
    part = part.assign(**{name: part[name].astype(float) / scale.divisor
                          for name in ("value", "interval_low", "interval_high")})  # fmt: skip
    top, middles = _GAP_IN / 2, {}
    places = []
    for workload in _workloads(part):
        rows = part[part["workload"] == workload].set_index("drive")
        present = [drive for drive in drives if drive in rows.index]
        height = _rows_in(part, workload)
        first = top + (height - _GAP_IN - _BAR_IN * len(present)) / 2 + _BAR_IN / 2
        places += [(drive, workload, first + _BAR_IN * number) for number, drive in enumerate(present)]
        middles[workload] = top + (height - _GAP_IN) / 2
        top += height
    by_key = part.set_index(["drive", "workload"])
    for drive in drives:
        own = [(workload, y) for name, workload, y in places if name == drive]
        if own:
            _bars(axes, by_key.loc[[(drive, workload) for workload, _ in own]], [y for _, y in own], drive, looks)
    names = ["\n".join(_lines(workload)) for workload in middles]
    axes.set_yticks(list(middles.values()), names)
    at = list(middles.items())
    tell(axes.yaxis, lambda y: min(at, key=lambda item: abs(item[1] - y))[0])
    axes.set_ylim(top, 0)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(0, _NUMBERS * float(ends) / scale.divisor)
    better = ", lower is better" if part["lower_is_better"].any() else ""
    label = scale.label if scale.unit else scale.name
    axes.set_xlabel(f"{label[:1].upper()}{label[1:]}{better}")
    ax.plain_numbers(axes, "x")


def _bars(axes: Axes, rows: pd.DataFrame, y: Sequence[float], drive: str, looks: dict[str, overlay.Look]) -> None:
    """Draw the bars of one drive, their intervals, and the value behind each."""
    lengths = rows["value"].to_numpy(dtype=float)
    low, high = (rows[name].to_numpy(dtype=float) for name in ("interval_low", "interval_high"))
    bars = axes.barh(y, lengths, _BAR_IN * _BARS, color=looks[drive].colour, label=drive, gid="value")
    say(bars, [f"95 % interval: {format_factor(a)} to {format_factor(b)}" if a == a and b == b else "No interval"
               for a, b in zip(low, high, strict=True)])  # fmt: skip
    ax.whiskers(axes, low, high, y, color=style.INK, linewidth=1.4, label=f"{drive}, interval")
    for place, length, end in zip(y, lengths, np.fmax(high, lengths), strict=True):
        axes.annotate(format_factor(length), (end, place), (5, 0), textcoords="offset points", ha="left",
                      va="center", fontsize=style.SMALL_PT, gid="number")  # fmt: skip
