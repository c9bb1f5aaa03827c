"""Write saturation against the volume written."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drivelab.figures import axes as ax
from drivelab.figures import selection, soak_lines, style
from drivelab.figures.quantities import Quantity, format_number, quantity, volume


@style.styled
def saturation_bytes(cells: pd.DataFrame, drives: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """`metric` of each slice against bytes written since conditioning, a line per drive and run.

    Drives of one capacity share a second axis in drive fills; with several capacities each line carries a diamond
    wherever its drive has been written full once more. Marked are the write cliff, where the IOPS fall off, and what
    the metric settles at. Raises ValueError for unsuitable tables and a drive whose capacity is not in `drives`.
    """
    soak = soak_lines.slices(cells, ("bytes_written", metric))
    selection.require(drives, ("drive", "capacity_bytes"), "drives")
    capacity = {drive: _capacity(drives, drive) for drive in soak["drive"].drop_duplicates()}
    scale, written = quantity(metric, soak[metric].max()), volume(soak["bytes_written_total"].max())
    name = soak["workload"].iloc[0]

    figure = style.new_figure(f"{scale.name} against volume, {name}")
    axes = figure.subplots()
    alone = soak["recording"].nunique() == 1
    same = len(set(capacity.values())) == 1
    for number, (drive, entry, colour, line) in enumerate(soak_lines.lines(soak, "bytes_written_total")):
        x, y = line["bytes_written_total"] / written.divisor, line[metric] / scale.divisor
        soak_lines.plot(axes, x, y, colour, number, entry)
        _mark(axes, line, metric, capacity[drive], scale, written.divisor, colour, alone=alone)
        if not same:
            fills = np.arange(1, line["bytes_written_total"].max() // capacity[drive] + 1) * capacity[drive]
            at = fills / written.divisor
            axes.plot(
                at,
                np.interp(at, x, y),
                linestyle="none",
                marker="D",
                markersize=7,
                color=colour,
                markeredgecolor="black",
                gid="fills",
                zorder=4,
            )
    if not same:
        axes.plot(
            [],
            [],
            linestyle="none",
            marker="D",
            color=style.MUTED,
            markeredgecolor="black",
            label="one more drive fill",
        )
    low, high = soak_lines.from_place(soak["bytes_written_total"]), float(soak["bytes_written_total"].max())
    axes.set_xlim(low / written.divisor, (high + 0.02 * (high - low)) / written.divisor or 1.0)
    ax.plain_numbers(axes, "x")
    axes.set_xlabel(written.label)
    if same:
        fill = next(iter(capacity.values())) / written.divisor
        top = axes.secondary_xaxis("top", functions=(lambda x: np.divide(x, fill), lambda n: np.multiply(n, fill)))
        top.set_xlabel("Drive fills (\N{MULTIPLICATION SIGN} user capacity)")
        top.xaxis.set_major_locator(MaxNLocator(nbins=9))
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric.endswith("_latency_us") and ax.is_wide(values))
    ax.legend(figure, axes)
    return figure


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
    found = soak_lines.landmarks(line, metric, capacity_bytes)
    totals = found.slices["bytes_written_total"]
    begin = float((totals - found.slices["bytes_written"]).min())
    soak_lines.mark(axes, found, (begin / per_place, float(totals.max()) / per_place), scale, colour, alone=alone)
    if found.cliff is not None:
        text = f": after {format_number(found.cliff.drive_fills)} drive fills"
        soak_lines.mark_cliff(axes, found.cliff.bytes_written / per_place, text, colour, alone=alone)


def _capacity(drives: pd.DataFrame, drive: str) -> int:
    found = drives[drives["drive"] == drive]["capacity_bytes"].drop_duplicates().tolist()
    if len(found) != 1 or not found[0] > 0:
        raise ValueError(f"table 'drives' gives {len(found)} capacities for drive '{drive}'; expected one above 0")
    return int(found[0])
