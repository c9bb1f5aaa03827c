"""What the two saturation figures share: the slices of a soak as a line per drive and run."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from drivelab.analysis.counted_slices import counted_slices
from drivelab.analysis.saturation import Cliff, Level, find_cliff, level
from drivelab.analysis.saturation_table import drifts
from drivelab.figures.base import axes as ax
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import Quantity, format_latency, format_number

_COUNTED = "#ececec"
"""The slices that the levels of several soaks are of: a solid colour, as shades that lie on each other add up."""
_DOTTED = (0, (1, 1.5))
_SEVERAL = "_of several"
"""Label of a mark that the legend names once for all soaks."""
_MOST_EMPTY = 0.4
"""Share of an axis."""

PANELS = ("iops", "mean_latency_us")
COLUMNS = (
    "recording",
    "drive",
    "measurement",
    "run",
    "step",
    "kind",
    "pattern",
    "read_share_pct",
    "block_size_bytes",
    "workload",
    "round",
    "elapsed_s",
    "runtime_s",
    "iops",
    "read_ios",
    "write_ios",
    "bytes_written_total",
    "filled",
    "in_window",
)


def slices(cells: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """The soaks' slices of one measurement and one workload; raises ValueError for anything else."""
    selection.require(cells, (*COLUMNS, *columns), "cells")
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
    """One line; on a long one only some points are marked, else the markers would hide it."""
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
    """What a soak is told by: where its rate falls off, and what the drawn metric settles at."""

    slices: pd.DataFrame
    """The counted ones."""
    whole: bool
    """Whether these are all."""
    words: str
    """What the level is."""
    level: Level | None
    cliff: Cliff | None


def landmarks(line: pd.DataFrame, metric: str, capacity_bytes: int = 1) -> Landmarks:
    """Cliff and level of one recording's slices in order, found as for the tables.

    A soak of a drive that was filled before has no cliff, maximum latency settles at nothing. Without the capacity the
    cliff has no drive fills.
    """
    fresh = not line["filled"].astype(bool).any()
    counted = counted_slices(line.assign(saturates=fresh))
    has_level = metric != "max_latency_us" and bool(counted.slices[metric].notna().any())
    settled = level(counted.slices, metric) if has_level else None
    cliff = find_cliff(line, capacity_bytes) if fresh else None
    words = f"{counted.statistic} (still drifts)" if fresh and drifts(counted.slices) else counted.statistic
    return Landmarks(counted.slices, len(counted.slices) == len(line), words, settled, cliff)


def panels(figure: Figure, metric: str | None) -> dict[str, Axes]:
    """Axes by metric: the I/O rate above the mean latency on one x axis, or `metric` alone."""
    metrics = PANELS if metric is None else (metric,)
    return dict(zip(metrics, figure.subplots(len(metrics), sharex=True, squeeze=False)[:, 0], strict=True))


def height_in(metric: str | None) -> float:
    """Of the figure with these panels."""
    return style.HEIGHT_IN if metric else 1.4 * style.HEIGHT_IN


def legend(figure: Figure, axes: Collection[Axes]) -> None:
    """Explain the lines of the first of the panels, and what the others' values settle at; the marks of several soaks,
    which are in the colours of these, once for all."""
    first, *others = (one.get_legend_handles_labels()[0] for one in axes)
    levels = [handle for handles in others for handle in handles if handle.get_gid() == "level"]
    drawn = [artist for one in axes for artist in (*one.lines, *one.patches)]
    unnamed = {artist.get_gid() for artist in drawn if str(artist.get_label()).startswith(_SEVERAL)}
    marks = {
        "cliff": Line2D([], [], color=style.MUTED, linestyle=_DOTTED, linewidth=1.6, label="write cliff"),
        "level": Line2D([], [], color=style.MUTED, linestyle="--", linewidth=1.6, label="level"),
        "counted": Patch(facecolor=_COUNTED, label="level window"),
    }
    told = [handle for gid, handle in marks.items() if gid in unnamed]
    ax.legend(figure, next(iter(axes)), handles=[*first, *levels, *told])


def mark(axes: Axes, found: Landmarks, span: tuple[float, float], scale: Quantity, colour: style.Colour,
         *, alone: bool) -> None:  # fmt: skip
    """A dashed line at the level over the slices that it is of, from and to the places `span` on the x axis.

    Its number is in the legend if the soak is `alone` in the figure.
    """
    if found.level is None:
        return
    value = found.level.average / scale.divisor
    is_time = scale.unit in ("µs", "ms", "s")
    number = format_latency(found.level.average) if is_time else f"{format_number(value)} {scale.unit}"
    label = f"{found.words}: {number}" if alone else _SEVERAL
    if not found.whole:
        axes.axvspan(*span, color=colour if alone else _COUNTED, alpha=0.08 if alone else 1.0, linewidth=0, zorder=0,
                     gid="counted", label="_counted" if alone else _SEVERAL)  # fmt: skip
    axes.plot(span, [value, value], color=style.ALARM if alone else colour, linestyle="--", linewidth=1.6, zorder=4,
              label=label, gid="level")  # fmt: skip


def mark_cliff(axes: Axes, place: float, text: str, colour: style.Colour, *, alone: bool) -> None:
    """A dotted line where the rate falls off; `text` says more in the legend if the soak is `alone`."""
    axes.axvline(place, color=style.INK if alone else colour, linestyle=_DOTTED, linewidth=1.6,
                 label=f"write cliff{text}" if alone else _SEVERAL, gid="cliff")  # fmt: skip


def from_place(places: pd.Series) -> float:
    """Where the x axis begins: at 0, unless most of it would be empty."""
    low, high = float(places.min()), float(places.max())
    return 0.0 if low < _MOST_EMPTY * high else max(0.0, low - 0.06 * (high - low) - 1e-9)
