"""Write saturation against time, and against the volume written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import Quantity, elapsed, format_number, quantity, volume
from drivelab.figures.kinds.soak import soak_lines
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="saturation_bytes",
        title="Saturation against bytes written",
        caption=(
            "I/O rate and mean latency of each slice of the soak against the bytes written since "
            "conditioning. A drive fill is the user capacity written once."
        ),
        tables=("cells", "drives"),
        when=("volume",),
        place=170,
        rows="soaks",
    ),
    FigureKind(
        name="saturation_of_drives",
        title="Saturation against bytes written, side by side",
        caption=(
            "I/O rate and mean latency of each drive's soak against the bytes written since conditioning: drives of "
            "different speed reach the same wear at different times."
        ),
        tables=("cells", "drives"),
        when=("drives_volume",),
        place=355,
        rows="soaks",
    ),
    FigureKind(
        name="saturation_time",
        title="Saturation against time",
        caption=(
            "I/O rate and mean latency of each slice of the soak against time. Where writes began right after a purge, "
            "the first part shows the speed fresh out of the box. Marks are the write cliff, where the I/O "
            "rate falls, and the level that the drive sustains."
        ),
        tables=("cells",),
        when=("soak",),
        place=160,
        rows="soaks",
    ),
)


@style.styled
def saturation_bytes(cells: pd.DataFrame, drives: pd.DataFrame) -> Figure:
    """Draw I/O rate above mean latency against bytes written since conditioning.

    Each drive and run has a line with a point per slice. Drives of one capacity share a second axis in drive fills;
    with several capacities each line has a diamond at every drive fill. Marks are the write cliff, where the IOPS fall,
    and the level that each line settles at. Raises ValueError for unsuitable tables and a drive not in `drives`.
    """
    soak = soak_lines.slices(cells)
    selection.require(drives, "drives")
    capacity = {drive: _capacity(drives, drive) for drive in soak["drive"].drop_duplicates()}
    written = volume(soak["bytes_written_total"].max())

    figure, panels = soak_lines.panels(f"IOPS and mean latency against volume, {soak['workload'].iloc[0]}")
    low, high = soak_lines.from_place(soak["bytes_written_total"]), float(soak["bytes_written_total"].max())
    for shown, axes in panels.items():
        _draw(axes, soak, shown, capacity, written)
        axes.set_xlim(low / written.divisor, (high + 0.02 * (high - low)) / written.divisor or 1.0)
        ax.plain_numbers(axes, "x")
    axes.set_xlabel(written.label)
    if len(set(capacity.values())) == 1:
        fill = next(iter(capacity.values())) / written.divisor
        first = next(iter(panels.values()))
        top = first.secondary_xaxis("top", functions=(lambda x: np.divide(x, fill), lambda n: np.multiply(n, fill)))
        top.set_xlabel("Drive fills (\N{MULTIPLICATION SIGN} user capacity)")
        top.xaxis.set_major_locator(MaxNLocator(nbins=9))
    soak_lines.legend(figure, panels.values())
    return figure


def _draw(axes: Axes, soak: pd.DataFrame, metric: str, capacity: dict[str, int], written: Quantity) -> None:
    scale, alone = quantity(metric, soak[metric].max()), soak["recording"].nunique() == 1
    same = len(set(capacity.values())) == 1
    diamond: dict[str, Any] = {"linestyle": "none", "marker": "D", "markeredgecolor": "black"}
    for number, (drive, entry, colour, line) in enumerate(soak_lines.lines(soak, "bytes_written_total")):
        x, y = line["bytes_written_total"] / written.divisor, line[metric] / scale.divisor
        soak_lines.plot(axes, x, y, colour, number, entry)
        _mark(axes, line, metric, capacity[drive], scale, written.divisor, colour, alone=alone)
        if not same:
            fills = np.arange(1, line["bytes_written_total"].max() // capacity[drive] + 1) * capacity[drive]
            at = fills / written.divisor
            axes.plot(at, np.interp(at, x, y), **diamond, markersize=7, color=colour, gid="fills", zorder=4)
    if not same:
        axes.plot([], [], **diamond, color=style.MUTED, label="one more drive fill")
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric.endswith("_latency_us") and ax.is_wide(values))


def _mark(
    axes: Axes,
    line: pd.DataFrame,
    metric: str,
    capacity_bytes: int,
    scale: Quantity,
    per_place: float,
    colour: style.Colour,
    *,
    alone: bool,
) -> None:
    marks = soak_lines.landmarks(line, metric, capacity_bytes)
    totals = marks.slices["bytes_written_total"]
    begin = float((totals - marks.slices["bytes_written"]).min())
    soak_lines.mark(axes, marks, (begin / per_place, float(totals.max()) / per_place), scale, colour, alone=alone)
    if marks.cliff is not None:
        text = f": after {format_number(marks.cliff.drive_fills)} drive fills"
        soak_lines.mark_cliff(axes, marks.cliff.bytes_written / per_place, text, colour, alone=alone)


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
    soak = soak_lines.slices(cells)
    began = soak.groupby("recording")["elapsed_s"].transform("min")
    soak = soak.assign(end_s=soak["elapsed_s"] + soak["runtime_s"] - began)
    time = elapsed(soak["end_s"].max())

    figure, panels = soak_lines.panels(f"IOPS and mean latency against time, {soak['workload'].iloc[0]}")
    for shown, axes in panels.items():
        _draw_over_time(axes, soak, shown, time)
        axes.set_xlim(0, soak["end_s"].max() / time.divisor * 1.02 or 1.0)
    axes.set_xlabel(time.label)
    words.time(axes.xaxis, time.divisor, float(soak["elapsed_s"].min()))
    soak_lines.legend(figure, panels.values())
    return figure


def _draw_over_time(axes: Axes, soak: pd.DataFrame, metric: str, time: Quantity) -> None:
    scale, alone = quantity(metric, soak[metric].max()), soak["recording"].nunique() == 1
    for number, (_, entry, colour, line) in enumerate(soak_lines.lines(soak, "end_s")):
        soak_lines.plot(axes, line["end_s"] / time.divisor, line[metric] / scale.divisor, colour, number, entry)
        marks = soak_lines.landmarks(line, metric)
        span = float((marks.slices["end_s"] - marks.slices["runtime_s"]).min()), float(marks.slices["end_s"].max())
        soak_lines.mark(axes, marks, (span[0] / time.divisor, span[1] / time.divisor), scale, colour, alone=alone)
        if marks.cliff is not None:
            place = marks.cliff.time_s / time.divisor
            soak_lines.mark_cliff(axes, place, f": after {format_number(place)} {time.unit}", colour, alone=alone)
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric.endswith("_latency_us") and ax.is_wide(values))
