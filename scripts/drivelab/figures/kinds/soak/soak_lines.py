"""Slices of a soak, and its landmarks in the saturation figures: the write cliff and the level."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drivelab.analysis.values.saturation_table import drifts
from drivelab.analysis.values.saturation_values import Cliff, Level, counted_slices, find_cliff, level
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_latency, format_number
from drivelab.figures.families.lines import Panel

_COUNTED = "#ececec"
"""Colour of the level windows of several soaks: opaque, as transparent shades would add up."""
_DOTTED = (0, (1, 1.5))
_MOST_EMPTY = 0.4
"""Maximum empty share of an axis that begins at 0."""


def slices(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the soaks' slices; raises ValueError for several measurements or workloads."""
    soak = selection.rows(cells, "cells", kind="soak")
    for column in ("measurement", "pattern", "read_share_pct", "block_size_bytes", "workload"):
        selection.require_one(soak, column, "cells")
    return soak


@dataclass(frozen=True)
class Landmarks:
    """Landmarks of a soak: its write cliff, and the level of the drawn metric."""

    slices: pd.DataFrame
    """Counted slices."""
    whole: bool
    """Whether all slices count."""
    words: str
    """Name of the level."""
    level: Level | None
    cliff: Cliff | None


def landmarks(line: pd.DataFrame, metric: str, capacity_bytes: int = 1) -> Landmarks:
    """Return cliff and level of one recording's ordered slices, by the method of the tables.

    A drive that was filled before the soak has no cliff. Without the capacity, the cliff
    has no drive fills.
    """
    fresh = not line["filled"].astype(bool).any()
    counted = counted_slices(line.assign(saturates=fresh))
    has_level = bool(counted.slices[metric].notna().any())
    settled = level(counted.slices, metric) if has_level else None
    cliff = find_cliff(line, capacity_bytes) if fresh else None
    words = f"{counted.statistic} (still drifts)" if fresh and drifts(counted.slices) else counted.statistic
    return Landmarks(counted.slices, len(counted.slices) == len(line), words, settled, cliff)


def mark(panel: Panel, marks: Landmarks, span: tuple[float, float], colour: style.Colour, *,
         alone: bool) -> list[Artist]:  # fmt: skip
    """Draw a dashed line at the level over its slices, between the places `span` on the x axis.

    The legend has its number if the soak is `alone` in the figure.
    """
    if marks.level is None:
        return []
    value, unit = marks.level.average / panel.scale.divisor, panel.scale.unit
    is_time = unit in ("µs", "ms", "s")
    number = format_latency(marks.level.average) if is_time else f"{format_number(value)} {unit}"
    if not marks.whole:
        panel.axes.axvspan(*span, color=colour if alone else _COUNTED, alpha=0.08 if alone else 1.0, linewidth=0,
                           zorder=0, gid="counted", label="_counted")  # fmt: skip
    label = f"{marks.words}: {number}" if alone else "_level"
    (line,) = panel.axes.plot(span, [value, value], color=style.ALARM if alone else colour, linestyle="--",
                              linewidth=1.6, zorder=4, label=label, gid="level")  # fmt: skip
    if alone:
        return [line]
    window = [] if marks.whole else [Patch(facecolor=_COUNTED, label="level window")]
    return [Line2D([], [], color=style.MUTED, linestyle="--", linewidth=1.6, label="level"), *window]


def mark_cliff(axes: Axes, place: float, text: str, colour: style.Colour, *, alone: bool) -> Artist:
    """Draw a dotted line at the write cliff; `text` follows in the legend if the soak is `alone`."""
    line = axes.axvline(place, color=style.INK if alone else colour, linestyle=_DOTTED, linewidth=1.6, gid="cliff",
                        label=f"write cliff{text}" if alone else "_cliff")  # fmt: skip
    shared = Line2D([], [], color=style.MUTED, linestyle=_DOTTED, linewidth=1.6, label="write cliff")
    return line if alone else shared


def from_place(places: pd.Series) -> float:
    """Return the beginning of the x axis: 0, unless too much of the axis would be empty."""
    low, high = float(places.min()), float(places.max())
    return 0.0 if low < _MOST_EMPTY * high else max(0.0, low - 0.06 * (high - low) - 1e-9)
