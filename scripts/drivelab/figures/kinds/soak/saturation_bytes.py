"""Write saturation against time, and against the volume written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from drivelab.analysis.values.saturation_values import Cliff
from drivelab.figures.base import selection, style, words
from drivelab.figures.base.quantities import Quantity, elapsed, format_number, volume
from drivelab.figures.families.lines import Lines, Panel, X
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


_METRICS = ("iops", "mean_latency_us")
_DIAMOND: dict[str, Any] = {"linestyle": "none", "marker": "D", "markeredgecolor": "black"}


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
    scale = volume(soak["bytes_written_total"].max())

    def cliff_at(cliff: Cliff) -> tuple[float, str]:
        return cliff.bytes_written / scale.divisor, f": after {format_number(cliff.drive_fills)} drive fills"

    def fills(panel: Panel) -> Sequence[Artist]:
        if len(set(capacity.values())) == 1:
            if panel.is_first:
                _fills_axis(panel, next(iter(capacity.values())) / scale.divisor)
            return ()
        for name, line in panel.points.groupby("line", sort=False):
            fill = capacity[line["drive"].iloc[0]] / scale.divisor
            at = np.arange(1, line["at"].max() // fill + 1) * fill
            panel.axes.plot(at, np.interp(at, line["at"], panel.shown(line)), **_DIAMOND, markersize=7,
                            color=panel.looks[str(name)].colour, gid="fills", zorder=4)  # fmt: skip
        return (Line2D([], [], **_DIAMOND, color=style.MUTED, label="one more drive fill"),)

    low, high = soak_lines.from_place(soak["bytes_written_total"]), float(soak["bytes_written_total"].max())
    limits = low / scale.divisor, (high + 0.02 * (high - low)) / scale.divisor or 1.0
    soak = soak.assign(at=soak["bytes_written_total"], spent=soak["bytes_written"])
    return _draw("volume", soak, scale, limits, cliff_at, capacity, fills)


def _fills_axis(panel: Panel, fill: float) -> None:
    """Add an axis in drive fills, each `fill` long, above the panel."""
    top = panel.axes.secondary_xaxis("top", functions=(lambda x: np.divide(x, fill), lambda n: np.multiply(n, fill)))
    top.set_xlabel("Drive fills (\N{MULTIPLICATION SIGN} user capacity)")
    top.xaxis.set_major_locator(MaxNLocator(nbins=9))


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
            marks = soak_lines.landmarks(part, panel.metric, capacity.get(part["drive"].iloc[0], 1))
            if marks.cliff is not None:
                entries.append(soak_lines.mark_cliff(panel.axes, *cliff_at(marks.cliff), colour, alone=alone))
            span = float((marks.slices["at"] - marks.slices["spent"]).min()), float(marks.slices["at"].max())
            entries += soak_lines.mark(panel, marks, span, colour, alone=alone)
        return [*also(panel), *entries]

    return Lines(
        f"IOPS and mean latency against {against}, {soak['workload'].iloc[0]}", _METRICS,
        X("at", scale.label, "linear", limits=limits), stacked=True, linear=("iops",), marks=landmarks,
    ).draw(soak.sort_values(["order", "run", "at"]))  # fmt: skip
