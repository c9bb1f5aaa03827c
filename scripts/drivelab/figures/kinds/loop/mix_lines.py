"""I/O rate against the share of reads, a line per block size or queue depth."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        name="mix_lines",
        title="Mixes by block size or queue depth",
        caption=(
            "I/O rate against the share of reads, a line for each block size or queue depth. Level lines belong "
            "to a drive whose rate does not depend on the mix; a line that sags shows that mixes are slower than "
            "reads and writes alone."
        ),
        tables=("cells", "steady_state"),
        when=("mix_lines",),
        place=295,
    ),
)

_LOAD = ["pattern", "block_size_bytes", "alignment_offset_bytes", "threads", "queue_depth"]
_SHARES = [0, 20, 40, 60, 80, 100]


@style.styled
def mix_lines(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the I/O rate of one drive over the share of reads, a line for each load that has several mixes.

    Raises ValueError for unsuitable tables and for fewer than two such loads.
    """
    selection.require_one(cells, "drive", "cells")
    table = overlay.loop_values(cells, steady_state, ["iops"], [*_LOAD, "read_share_pct"])
    table = table.fillna({"alignment_offset_bytes": 0})
    lines = {key: part.sort_values("read_share_pct") for key, part in table.groupby(_LOAD, sort=True) if len(part) > 2}
    if len(lines) < 2:
        raise ValueError("table 'cells' has no two loads with several mixes of reads and writes")
    varied = [name for name in _LOAD if len({key[_LOAD.index(name)] for key in lines}) > 1]
    scale = quantity("iops", float(table["iops"].max()))
    figure = style.new_figure("Mixes of reads and writes", height_in=style.HEIGHT_IN)
    style.note(figure, f"each point: {counted.what(steady_state)}")
    axes = figure.subplots()
    for (key, line), colour, marker in zip(
        lines.items(), style.ordered_colours(len(lines)), style.MARKERS * 9, strict=False
    ):
        name = _name(dict(zip(_LOAD, key, strict=True)), varied)
        axes.plot(line["read_share_pct"], line["iops"] / scale.divisor, color=colour, marker=marker, label=name,
                  gid="line")  # fmt: skip
    values = [float(value) for line in lines.values() for value in line["iops"] / scale.divisor]
    ax.scale_y(axes, values, scale, log=ax.is_wide(values))
    axes.set_xlim(-4, 104)
    axes.xaxis.set_major_locator(FixedLocator(_SHARES))
    axes.set_xlabel("Reads (% of the I/Os)")
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, axes)
    return figure


def _name(load: dict[str, object], varied: list[str]) -> str:
    """Return what distinguishes a load from the others, such as `4KiB` or `T1Q32`."""
    parts = []
    if "pattern" in varied:
        parts.append(selection.access(str(load["pattern"])))
    if "block_size_bytes" in varied:
        parts.append(format_size(int(str(load["block_size_bytes"]))))
    if "alignment_offset_bytes" in varied:
        offset = int(float(str(load["alignment_offset_bytes"])))
        parts.append(f"unaligned by {format_size(offset)}" if offset else "aligned")
    if {"threads", "queue_depth"} & set(varied):
        parts.append(demand(int(str(load["threads"])), int(str(load["queue_depth"]))))
    return " ".join(parts)
