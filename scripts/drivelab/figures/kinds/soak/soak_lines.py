"""Shared parts of the saturation figures: slices of a soak as a line per drive and run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drivelab.analysis.values.saturation_table import drifts
from drivelab.analysis.values.saturation_values import Cliff, Level, counted_slices, find_cliff, level
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import Quantity, format_latency, format_number

_COUNTED = "#ececec"
"""Colour of the level windows of several soaks: opaque, as transparent shades would add up."""
_DOTTED = (0, (1, 1.5))
_SEVERAL = "_of several"
"""Label of marks that share one legend entry for all soaks."""
_MOST_EMPTY = 0.4
"""Maximum empty share of an axis that begins at 0."""

_PANELS = ("iops", "mean_latency_us")


def slices(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the soaks' slices; raises ValueError for several measurements or workloads."""
    soak = selection.rows(cells, "cells", kind="soak")
    for column in ("measurement", "pattern", "read_share_pct", "block_size_bytes", "workload"):
        selection.require_one(soak, column, "cells")
    return soak


def lines(soak: pd.DataFrame, x: str) -> Iterator[tuple[str, str, style.Colour, pd.DataFrame]]:
    """Yield drive, legend entry, colour and slices in the order of `x` for each recording."""
    drives = list(soak["drive"].drop_duplicates())
    colour_of = {drive: look.colour for drive, look in overlay.looks(drives).items()}
    for drive in drives:
        of_drive = soak[soak["drive"] == drive]
        recordings = of_drive.sort_values("run")["recording"].drop_duplicates()
        for recording in recordings:
            line = of_drive[of_drive["recording"] == recording].sort_values(x)
            name = drive if len(recordings) == 1 else f"{drive}, run {line['run'].iloc[0]}"
            yield drive, name, colour_of[drive], line


def plot(axes: Axes, x: pd.Series, y: pd.Series, colour: style.Colour, number: int, name: str) -> None:
    """Draw one line; a long line has markers at some points only."""
    every = 1 if len(x) <= 60 else (number * len(x) // 100, len(x) // 12)
    short = every == 1
    axes.plot(
        x,
        y,
        color=colour,
        linewidth=1.4 if short else 1.0,
        marker=style.MARKERS[number % 10],
        markevery=every,
        markersize=4 if short else 6,
        markeredgecolor=colour if short else "white",
        label=name,
        gid="line",
    )


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


def panels(title: str) -> tuple[Figure, dict[str, Axes]]:
    """Return a figure with axes by metric: I/O rate above mean latency on one x axis."""
    figure = style.new_figure(title, height_in=1.4 * style.HEIGHT_IN)
    return figure, dict(zip(_PANELS, figure.subplots(len(_PANELS), sharex=True), strict=True))


def legend(figure: Figure, panels: Collection[Axes]) -> None:
    """Add the lines of the first panel, the levels of the others, and shared marks to the legend."""
    first, *others = (axes.get_legend_handles_labels()[0] for axes in panels)
    levels = [handle for handles in others for handle in handles if handle.get_gid() == "level"]
    drawn = [artist for axes in panels for artist in (*axes.lines, *axes.patches)]
    unnamed = {artist.get_gid() for artist in drawn if str(artist.get_label()).startswith(_SEVERAL)}
    marks = {
        "cliff": Line2D([], [], color=style.MUTED, linestyle=_DOTTED, linewidth=1.6, label="write cliff"),
        "level": Line2D([], [], color=style.MUTED, linestyle="--", linewidth=1.6, label="level"),
        "counted": Patch(facecolor=_COUNTED, label="level window"),
    }
    once = [handle for gid, handle in marks.items() if gid in unnamed]
    ax.legend(figure, next(iter(panels)), handles=[*first, *levels, *once])


def mark(axes: Axes, marks: Landmarks, span: tuple[float, float], scale: Quantity, colour: style.Colour,
         *, alone: bool) -> None:  # fmt: skip
    """Draw a dashed line at the level over its slices, between the places `span` on the x axis.

    The legend has its number if the soak is `alone` in the figure.
    """
    if marks.level is None:
        return
    value = marks.level.average / scale.divisor
    is_time = scale.unit in ("µs", "ms", "s")
    number = format_latency(marks.level.average) if is_time else f"{format_number(value)} {scale.unit}"
    label = f"{marks.words}: {number}" if alone else _SEVERAL
    if not marks.whole:
        axes.axvspan(*span, color=colour if alone else _COUNTED, alpha=0.08 if alone else 1.0, linewidth=0, zorder=0,
                     gid="counted", label="_counted" if alone else _SEVERAL)  # fmt: skip
    axes.plot(span, [value, value], color=style.ALARM if alone else colour, linestyle="--", linewidth=1.6, zorder=4,
              label=label, gid="level")  # fmt: skip


def mark_cliff(axes: Axes, place: float, text: str, colour: style.Colour, *, alone: bool) -> None:
    """Draw a dotted line at the write cliff; `text` follows in the legend if the soak is `alone`."""
    axes.axvline(place, color=style.INK if alone else colour, linestyle=_DOTTED, linewidth=1.6,
                 label=f"write cliff{text}" if alone else _SEVERAL, gid="cliff")  # fmt: skip


def from_place(places: pd.Series) -> float:
    """Return the beginning of the x axis: 0, unless too much of the axis would be empty."""
    low, high = float(places.min()), float(places.max())
    return 0.0 if low < _MOST_EMPTY * high else max(0.0, low - 0.06 * (high - low) - 1e-9)
