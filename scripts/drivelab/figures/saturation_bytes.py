"""Write saturation against the volume written."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from drivelab.figures import axes as ax
from drivelab.figures import selection, soak_lines, style
from drivelab.figures.quantities import quantity, volume


@style.styled
def saturation_bytes(
    cells: pd.DataFrame, drives: pd.DataFrame, *, metric: str = "iops", cliff_bytes: Mapping[str, float] | None = None
) -> Figure:
    """`metric` of each slice against bytes written since conditioning, a line per drive and run.

    Drives of one capacity share a second axis in drive fills; with several capacities each line carries a diamond
    wherever its drive has been written full once more. `cliff_bytes` gives, for each drive, the volume at which its
    rate falls off. Raises ValueError for unsuitable tables and a drive whose capacity is not in `drives`.
    """
    soak = soak_lines.slices(cells, ("bytes_written_total", metric))
    selection.require(drives, ("drive", "capacity_bytes"), "drives")
    capacity = {drive: _capacity(drives, drive) for drive in soak["drive"].drop_duplicates()}
    scale, written = quantity(metric, soak[metric].max()), volume(soak["bytes_written_total"].max())
    name = soak["workload"].iloc[0]

    figure = style.new_figure(f"{scale.name} against volume, {name}")
    axes = figure.subplots()
    colour_of = {}
    same = len(set(capacity.values())) == 1
    for number, (drive, entry, colour, line) in enumerate(soak_lines.lines(soak, "bytes_written_total")):
        colour_of[drive] = colour
        x, y = line["bytes_written_total"] / written.divisor, line[metric] / scale.divisor
        soak_lines.plot(axes, x, y, colour, number, entry)
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
    soak_lines.mark_cliffs(axes, {drive: at / written.divisor for drive, at in (cliff_bytes or {}).items()}, colour_of)
    axes.set_xlim(0, soak["bytes_written_total"].max() / written.divisor * 1.02 or 1.0)
    ax.plain_numbers(axes, "x")
    axes.set_xlabel(written.label)
    if same:
        fill = next(iter(capacity.values())) / written.divisor
        top = axes.secondary_xaxis("top", functions=(lambda x: np.divide(x, fill), lambda n: np.multiply(n, fill)))
        top.set_xlabel("Drive fills (\N{MULTIPLICATION SIGN} user capacity)")
        top.xaxis.set_major_locator(MaxNLocator(nbins=9))
    values = (soak[metric] / scale.divisor).dropna().tolist()
    ax.scale_y(axes, values, scale, log=metric == "max_latency_us" and ax.is_wide(values))
    ax.legend(figure, axes, "Drive")
    return figure


def _capacity(drives: pd.DataFrame, drive: str) -> int:
    found = drives[drives["drive"] == drive]["capacity_bytes"].drop_duplicates().tolist()
    if len(found) != 1 or not found[0] > 0:
        raise ValueError(f"table 'drives' gives {len(found)} capacities for drive '{drive}'; expected one above 0")
    return int(found[0])
