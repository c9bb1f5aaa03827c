"""Write saturation against time, and against the volume written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drivelab.analysis.values.saturation_values import Cliff
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import elapsed, format_number, quantity, volume
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

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        return cliff.bytes_written / written.divisor, f": after {format_number(cliff.drive_fills)} drive fills"

    figure, panels = soak_lines.panels(f"IOPS and mean latency against volume, {soak['workload'].iloc[0]}")
    low, high = soak_lines.from_place(soak["bytes_written_total"]), float(soak["bytes_written_total"].max())
    for shown, axes in panels.items():
        _panel(axes, soak, shown, "bytes_written_total", "bytes_written", written.divisor, cliff_at, capacity)
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


def _panel(
    axes: Axes, soak: pd.DataFrame, metric: str, x: str, spent: str, per_place: float,
    cliff_at: Callable[[Cliff], tuple[float, str]], capacity: Mapping[str, int],
) -> None:  # fmt: skip
    """Draw the lines of `metric` against the column `x`, with their levels and cliffs.

    A slice begins at its `x` less its `spent`. `cliff_at` returns the place of a cliff and its text.
    """
    scale, alone = quantity(metric, soak[metric].max()), soak["recording"].nunique() == 1
    different = len(set(capacity.values())) > 1
    diamond: dict[str, Any] = {"linestyle": "none", "marker": "D", "markeredgecolor": "black"}
    for number, (drive, entry, colour, line) in enumerate(soak_lines.lines(soak, x)):
        places, values = line[x] / per_place, line[metric] / scale.divisor
        soak_lines.plot(axes, places, values, colour, number, entry)
        marks = soak_lines.landmarks(line, metric, capacity.get(drive, 1))
        begin, end = float((marks.slices[x] - marks.slices[spent]).min()), float(marks.slices[x].max())
        soak_lines.mark(axes, marks, (begin / per_place, end / per_place), scale, colour, alone=alone)
        if marks.cliff is not None:
            soak_lines.mark_cliff(axes, *cliff_at(marks.cliff), colour, alone=alone)
        if different:
            at = np.arange(1, line[x].max() // capacity[drive] + 1) * capacity[drive] / per_place
            axes.plot(at, np.interp(at, places, values), **diamond, markersize=7, color=colour, gid="fills", zorder=4)
    if different:
        axes.plot([], [], **diamond, color=style.MUTED, label="one more drive fill")
    shown = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, shown, scale, log=metric.endswith("_latency_us") and ax.is_wide(shown))


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

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        place = cliff.time_s / time.divisor
        return place, f": after {format_number(place)} {time.unit}"

    figure, panels = soak_lines.panels(f"IOPS and mean latency against time, {soak['workload'].iloc[0]}")
    for shown, axes in panels.items():
        _panel(axes, soak, shown, "end_s", "runtime_s", time.divisor, cliff_at, {})
        axes.set_xlim(0, soak["end_s"].max() / time.divisor * 1.02 or 1.0)
    axes.set_xlabel(time.label)
    words.time(axes.xaxis, time.divisor, float(soak["elapsed_s"].min()))
    soak_lines.legend(figure, panels.values())
    return figure
