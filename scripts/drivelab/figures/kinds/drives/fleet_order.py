"""One value of all drives of a fleet in ascending order, with median and outliers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import AXES, quantity, short_name

_NAMED = 6
"""Number of outliers that are named, the farthest first."""
_NEAR = 0.06
"""Share of the axes; names of points closer than this would overlap, so they share one line."""
_LETTER, _HEIGHT, _DOT = 0.016, 0.08, 0.018
"""Shares of the axes: width of a letter, height of a line of text, size of a dot."""
_OUTLIER = "#c23b22"
_FAULTY = "#8a8a8a"
_BLUE = "#0a5c9e"
_BAND = "#bcd3e8"


@style.styled
def fleet_order(deviations: pd.DataFrame) -> Figure:
    """Draw the rows of one value of table `fleet_deviations`, lowest first.

    The band reaches from the 5 % to the 95 % quantile of the values that count. Faulty values are hollow. Outliers are
    red diamonds; the farthest are named. Raises ValueError for rows of no value or of several.
    """
    if deviations[["measurement", "cell_label", "metric"]].drop_duplicates().shape[0] != 1:
        raise ValueError("a figure of one value of a fleet needs the rows of one value")
    rows = deviations.sort_values("value", kind="stable").reset_index(drop=True)
    metric, first = str(rows["metric"].iloc[0]), rows.iloc[0]
    scale = quantity(metric, float(rows["value"].max())) if metric in AXES else None
    values = rows["value"].to_numpy(dtype=float) / (scale.divisor if scale else 1.0)
    counts, outlier = rows["place"].notna().to_numpy(), rows["outlier"].to_numpy(dtype=bool)
    number = np.arange(1, len(rows) + 1)
    figure = style.new_figure(f"{first['measurement']}: {len(rows)} drives in order", height_in=3.4)
    axes = figure.subplots()
    size = max(3.0, min(6.0, 300 / len(rows)))
    if counts.any():
        low, median, high = np.percentile(values[counts], (5, 50, 95))
        axes.axhspan(low, high, color=_BAND, zorder=0, label="5 % to 95 % of the drives")
        axes.axhline(median, color=style.INK, linewidth=1.0, zorder=1, label="median")
    marks = (
        (counts & ~outlier, "o", _BLUE, _BLUE, "drive"),
        (~counts, "o", "none", _FAULTY, "unreliable"),
        (outlier, "D", _OUTLIER, _OUTLIER, "outlier"),
    )
    for chosen, marker, face, edge, name in marks:
        if chosen.any():
            axes.plot(number[chosen], values[chosen], linestyle="none", marker=marker, markersize=size,
                      markerfacecolor=face, markeredgecolor=edge, label=name)  # fmt: skip
    farthest = set(rows.loc[outlier, "modified_z"].abs().sort_values(ascending=False, kind="stable").index[:_NAMED])
    points = np.column_stack([number / (len(rows) + 1), (values - values.min()) / (float(np.ptp(values)) or 1.0)])
    for group in _groups(np.flatnonzero(outlier).tolist(), values):
        named = [str(rows["drive"][place]) for place in group if place in farthest]
        if not named:
            continue
        names = ", ".join(named + ["\N{HORIZONTAL ELLIPSIS}"] * (len(named) < len(group)))
        right, up = _side(points, group, len(names))
        place = _beside(group, right)
        axes.annotate(names, (number[place], values[place]), fontsize=style.SMALL_PT, textcoords="offset points",
                      xytext=(6 * right, 6 * up), ha=("center", "left", "right")[right],
                      va=("center", "bottom", "top")[up])  # fmt: skip
    axes.set_xlim(0, len(rows) + 1)
    axes.set_xlabel("Drives, from the lowest value")
    axes.set_ylabel(scale.label if scale else f"{short_name(metric)} ({first['unit']})")
    ax.legend(figure, axes)
    clock = "virtual" if (rows["clock"] == "virtual").any() else "wall"
    style.label(figure, reduced=bool(rows["reduced"].any()), virtual=bool(rows["virtual"].any()), clock=clock,
                subject=f"all drives, {first['cell_label']}")  # fmt: skip
    return figure


def _side(points: npt.NDArray[np.float64], group: Sequence[int], letters: int) -> tuple[int, int]:
    """Return the side on which the names of a group hide the fewest `points` (in shares of the axes).

    The side is right of the last or left of the first point (1 or -1, 0), or above or below the middle (0, 1 or -1).
    """
    width = letters * _LETTER

    def cost(side: tuple[int, int]) -> int:
        right, up = side
        x, y = points[_beside(group, right)] + (right * (width / 2 + _DOT), up * _HEIGHT)
        hidden = (np.abs(points - (x, y)) < (width / 2 + _DOT / 2, _HEIGHT - _DOT)).all(axis=1)
        outside = not (width / 2 < x < 1 - width / 2 and 0 <= y <= 1)
        return int(hidden.sum()) + outside * len(points)

    inwards = -1 if points[group[0], 0] > 0.5 else 1
    return min(((inwards, 0), (0, 1), (0, -1), (-inwards, 0)), key=cost)


def _beside(group: Sequence[int], right: int) -> int:
    """Return the point of a group beside which its names are written."""
    return group[0] if right < 0 else group[-1] if right else group[len(group) // 2]


def _groups(places: Sequence[int], values: npt.NDArray[np.float64]) -> list[list[int]]:
    """Group places whose neighbouring points are close on axes that show all `values`."""
    span = float(np.ptp(values)) or 1.0
    groups: list[list[int]] = []
    for place in places:
        before = groups[-1][-1] if groups else None
        if before is not None and max((place - before) / len(values), (values[place] - values[before]) / span) < _NEAR:
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups
