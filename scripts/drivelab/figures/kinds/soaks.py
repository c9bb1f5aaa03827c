"""Write saturation against time and volume, with its cliff and level, and writes after idle times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from drivelab.analysis.values.bursts import FULL, Burst, Fall, bursts, find_fall, share_back
from drivelab.analysis.values.saturation_table import drifts
from drivelab.analysis.values.saturation_values import Cliff, counted_slices, find_cliff, level
from drivelab.core.units import format_amount
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import NUMBER, Quantity, elapsed, format_latency, format_number, quantity, volume
from drivelab.figures.families.lines import Lines, Panel, X
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        "saturation_bytes", "Saturation against bytes written",
        "I/O rate and mean latency of each slice of the soak against the bytes written since conditioning. A drive "
        "fill is the user capacity written once.",
        tables=("cells", "drives"), when=("volume",), place=170, rows="soaks",
    ),
    FigureKind(
        "saturation_of_drives", "Saturation against bytes written, side by side",
        "I/O rate and mean latency of each drive's soak against the bytes written since conditioning: drives of "
        "different speed reach the same wear at different times.",
        tables=("cells", "drives"), when=("drives_volume",), place=355, rows="soaks", draw="saturation_bytes",
    ),
    FigureKind(
        "saturation_time", "Saturation against time",
        "I/O rate and mean latency of each slice of the soak against time. Where writes began right after a purge, "
        "the first part shows the speed fresh out of the box. Marks are the write cliff, where the I/O rate falls, "
        "and the level that the drive sustains.",
        tables=("cells",), when=("soak",), place=160, rows="soaks",
    ),
    FigureKind(
        "slc_cache", "Write cache, at first and after idle times",
        "Rate of writes against their volume, a line for each burst: on the prepared drive, then after idle times. "
        "Dotted lines are where the rate falls, because the cache is full. The volume up to there is the cache that "
        "was free.",
        tables=("cells",), when=("cache",), place=155, draw="burst_rates",
    ),
)  # fmt: skip

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


def _cliff(axes: Axes, place: float, text: str, colour: style.Colour, *, alone: bool) -> Artist:
    """Draw a dotted line at the write cliff; `text` follows in the legend if the soak is `alone` in the figure."""
    line = axes.axvline(place, color=style.INK if alone else colour, linestyle=_DOTTED, linewidth=1.6, gid="cliff",
                        label=f"write cliff{text}" if alone else "write cliff")  # fmt: skip
    shared = Line2D([], [], color=style.MUTED, linestyle=_DOTTED, linewidth=1.6, label="write cliff")
    return line if alone else shared


def _level(panel: Panel, line: pd.DataFrame, fresh: bool, colour: style.Colour, *, alone: bool) -> list[Artist]:
    """Draw a dashed line at the level over the slices that count, by the method of the tables.

    The legend has its number if the soak is `alone` in the figure.
    """
    counted = counted_slices(line.assign(saturates=fresh))
    shown = counted.slices
    if not shown[panel.metric].notna().any():
        return []
    average = level(shown, panel.metric).average
    value, unit = average / panel.scale.divisor, panel.scale.unit
    number = format_latency(average) if unit in ("µs", "ms", "s") else f"{format_number(value)} {unit}"
    span = float((shown["at"] - shown["spent"]).min()), float(shown["at"].max())
    whole = len(shown) == len(line)
    if not whole:
        panel.axes.axvspan(*span, color=colour if alone else _COUNTED, alpha=0.08 if alone else 1.0, linewidth=0,
                           zorder=0, gid="counted", label="_counted" if alone else "level window")  # fmt: skip
    drifting = " (still drifts)" if fresh and drifts(shown) else ""
    (drawn,) = panel.axes.plot(span, [value, value], color=style.ALARM if alone else colour, linestyle="--",
                               linewidth=1.6, zorder=4, gid="level",
                               label=f"{counted.statistic}{drifting}: {number}" if alone else "level")  # fmt: skip
    if alone:
        return [drawn]
    window = [] if whole else [Patch(facecolor=_COUNTED, label="level window")]
    return [Line2D([], [], color=style.MUTED, linestyle="--", linewidth=1.6, label="level"), *window]


_METRICS = ("iops", "mean_latency_us")
_DIAMOND: dict[str, Any] = {"linestyle": "none", "marker": "D", "markeredgecolor": "black"}


@style.styled
def saturation_bytes(cells: pd.DataFrame, drives: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against bytes written since conditioning.

    Each drive and run has a line with a point per slice. Drives of one capacity share a second axis in drive fills;
    with several capacities each line has a diamond at every drive fill. Marks are the write cliff, where the IOPS fall,
    and the level that each line settles at. Raises ValueError for unsuitable tables and a drive not in `drives`.
    """
    soak = slices(cells)
    selection.require(drives, "drives")
    capacity = {drive: _capacity(drives, drive) for drive in soak["drive"].drop_duplicates()}
    scale = volume(soak["bytes_written_total"].max())

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        return cliff.bytes_written / scale.divisor, f": after {format_number(cliff.drive_fills)} drive fills"

    def fills(panel: Panel) -> Sequence[Artist]:
        if len(set(capacity.values())) == 1:
            if panel.is_first:
                fill = next(iter(capacity.values())) / scale.divisor
                top = panel.axes.secondary_xaxis("top", functions=(lambda at: np.divide(at, fill),
                                                                   lambda fills: np.multiply(fills, fill)))  # fmt: skip
                top.set_xlabel("Drive fills (\N{MULTIPLICATION SIGN} user capacity)")
                top.xaxis.set_major_locator(MaxNLocator(nbins=9))
            return ()
        for name, line in panel.points.groupby("line", sort=False):
            own_fill = capacity[line["drive"].iloc[0]] / scale.divisor
            at = np.arange(1, line["at"].max() // own_fill + 1) * own_fill
            panel.axes.plot(at, np.interp(at, line["at"], panel.shown(line)), **_DIAMOND, markersize=7,
                            color=panel.looks[str(name)].colour, gid="fills", zorder=4)  # fmt: skip
        return (Line2D([], [], **_DIAMOND, color=style.MUTED, label="one more drive fill"),)

    low, high = float(soak["bytes_written_total"].min()), float(soak["bytes_written_total"].max())
    low = 0.0 if low < _MOST_EMPTY * high else max(0.0, low - 0.06 * (high - low) - 1e-9)
    limits = low / scale.divisor, (high + 0.02 * (high - low)) / scale.divisor or 1.0
    soak = soak.assign(at=soak["bytes_written_total"], spent=soak["bytes_written"])
    return _draw("volume", soak, scale, limits, cliff_at, capacity, fills)


def _capacity(drives: pd.DataFrame, drive: str) -> int:
    capacities = drives[drives["drive"] == drive]["capacity_bytes"].drop_duplicates().tolist()
    if len(capacities) != 1 or not capacities[0] > 0:
        raise ValueError(f"table 'drives' gives {len(capacities)} capacities for drive '{drive}'; expected one above 0")
    return int(capacities[0])


@style.styled
def saturation_time(cells: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against time, a line per drive and run.

    Each slice has a point at its end, counted from the beginning of the soak. Marks are the write cliff, where the IOPS
    fall, and the level that each line settles at. Raises ValueError for unsuitable tables.
    """
    soak = slices(cells)
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(at=soak["elapsed_s"] + soak["runtime_s"] - began, spent=soak["runtime_s"])
    scale = elapsed(soak["at"].max())

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        place = cliff.time_s / scale.divisor
        return place, f": after {format_number(place)} {scale.unit}"

    def clock(panel: Panel) -> Sequence[Artist]:
        words.time(panel.axes.xaxis, scale.divisor, float(soak["elapsed_s"].min()))
        return ()

    limits = 0.0, soak["at"].max() / scale.divisor * 1.02 or 1.0
    return _draw("time", soak, scale, limits, cliff_at, {}, clock)


def _draw(
    against: str, soak: pd.DataFrame, scale: Quantity, limits: tuple[float, float],
    cliff_at: Callable[[Cliff], tuple[float, str]], capacity: Mapping[str, int],
    also: Callable[[Panel], Sequence[Artist]],
) -> Figure:  # fmt: skip
    """Draw the slices at their ends `at`, which begin at `at` less `spent`, with levels and cliffs.

    `cliff_at` returns the place of a cliff and its text; `also` draws what only one figure has.
    """
    alone = soak["recording"].nunique() == 1
    several = soak.groupby("drive")["run"].transform("nunique") > 1
    line = soak["drive"].where(~several, soak["drive"] + ", run " + soak["run"].astype(str))
    order = soak["drive"].map(list(soak["drive"].drop_duplicates()).index)
    soak = soak.assign(line=line, order=order, at=soak["at"] / scale.divisor, spent=soak["spent"] / scale.divisor)

    def landmarks(panel: Panel) -> Sequence[Artist]:
        entries: list[Artist] = []
        for name, part in panel.points.groupby("line", sort=False):
            colour = panel.looks[str(name)].colour
            fresh = not part["filled"].astype(bool).any()  # a drive that was filled before has no cliff
            if fresh and (cliff := find_cliff(part, capacity.get(part["drive"].iloc[0], 1))) is not None:
                entries.append(_cliff(panel.axes, *cliff_at(cliff), colour, alone=alone))
            entries += _level(panel, part, fresh, colour, alone=alone)
        return [*also(panel), *entries]

    return Lines(
        f"IOPS and mean latency against {against}, {soak['workload'].iloc[0]}", _METRICS,
        X("at", scale.label, "linear", limits=limits), stacked=True, linear=("iops",), marks=landmarks,
    ).draw(soak.sort_values(["order", "run", "at"]))  # fmt: skip


_MIB = 1 << 20


@style.styled
def burst_rates(cells: pd.DataFrame) -> Figure:
    """Draw the bandwidth of each burst against its volume, and where it falls.

    `cells` holds the soaks of one recording. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    found = bursts(named(cells))
    if not found:
        raise ValueError("table 'cells' has no load that is repeated after idle times")
    scale = quantity("bandwidth_mib_s", float(cells["bandwidth_mib_s"].max()))
    longest = max(float(burst.moved.sum()) for burst in found)
    along = volume(longest)
    figure = style.new_figure(f"Write rate against volume, {cells['workload'].iloc[0]}")
    axes = figure.subplots()
    fall = find_fall(found[0].moved, found[0].seconds)
    for place, (burst, colour) in enumerate(zip(found, style.ordered_colours(len(found)), strict=True)):
        share = 1.0 if fall is None or not burst.wait else share_back(burst, fall)
        ends = np.r_[0.0, np.cumsum(burst.moved)] / along.divisor
        rates = burst.rates / _MIB / scale.divisor
        axes.plot(ends, np.r_[rates[:1], rates], drawstyle="steps-pre", color=colour,
                  linestyle=style.DASHES[place % 4], label=_name(burst, fall, share), gid="line")  # fmt: skip
        if fall is not None and share > FULL:
            axes.axvline(share * fall.fast_bytes / along.divisor, color=colour, linestyle=":", linewidth=1.6,
                         label=_name(burst, fall, share), gid="fall")  # fmt: skip
    axes.set_xlim(0, longest / along.divisor * 1.01)
    axes.set_xlabel(f"Written in this burst ({along.unit})")
    ax.write(axes.xaxis, NUMBER)
    ax.scale_y(axes, [float(value) / scale.divisor for value in cells["bandwidth_mib_s"]], scale)
    ax.legend(figure, axes)
    return figure


def _name(burst: Burst, fall: Fall | None, share: float) -> str:
    """Name a burst by the idle time before it, with the part of the cache that was free."""
    name = f"after {burst.wait} idle" if burst.wait else "at first"
    if fall is None:
        return name
    if burst.wait:
        return f"{name}: " + ("cache full" if share <= FULL else f"{share:.0%} of the cache free")
    rates = [format_number(rate) for rate in (fall.fast_mib_s, fall.slow_mib_s)]
    return f"{name}: {format_amount(fall.fast_bytes)} at {rates[0]}, then {rates[1]} MiB/s"
