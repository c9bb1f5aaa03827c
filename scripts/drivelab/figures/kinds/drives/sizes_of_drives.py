"""Block sizes of separate measurements, each after its own purge and fill, for all drives."""

from __future__ import annotations

from math import log2

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import Quantity, format_kib, format_mix, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="sizes_of_drives",
        title="By block size",
        caption=(
            'Reads and writes of each drive by block size, after "TP 2D" of the PTS throughput test. Each '
            "block size is a separate measurement after a purge and a fill. Where the line is flat, the "
            "block size does not matter."
        ),
        tables=("cells", "steady_state"),
        when=("sizes",),
        place=440,
        of_window=True,
    ),
    FigureKind(
        name="grid_of_drives",
        title="By block size, each mix",
        caption=(
            "Each drive by block size, a panel for each mix of reads and writes, all with one scale. A point is the "
            "average over the steady-state window of its drive."
        ),
        tables=("cells", "steady_state"),
        when=("drives_grid",),
        place=345,
        of_window=True,
        one_loop=True,
    ),
)

_MOST_COLUMNS = 3
_ROW_IN = 2.4
_KEY = ["pattern", "read_share_pct", "block_size_bytes"]
_MOST_NAMED = 14
"""Most block sizes named on the x axes of a row of panels together."""
_SMALLEST_PT = 4.5
"""Size of the smallest marker, half as wide as the largest."""
_PURE = {100: "reads", 0: "writes"}


@style.styled
def sizes_of_drives(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric of the loops against block size, panels for reads and writes.

    Each drive has a line; its runs are averaged. After "TP 2D" of the PTS throughput test, which measures each block
    size separately. Raises ValueError for unsuitable tables, and for loops that track different metrics.
    """
    selection.require(cells, "cells")
    selection.require_one(steady_state, "metric", "steady_state")
    metric = str(steady_state["metric"].iloc[0])
    table = _values(cells[cells["kind"] == "loop"], steady_state, metric)
    scale = quantity(metric, float(table[metric].max()))
    table = table.assign(shown=table[metric] / scale.divisor)
    loads = table[_KEY[:2]].drop_duplicates().sort_values(_KEY[:2], ascending=[True, False])
    figure = style.new_figure(f"{scale.name} by block size")
    apart = " of a separate measurement" if table["measurement"].nunique() > 1 else ""
    style.note(figure, f"each point: {counted.what(steady_state)}{apart}")
    rows = -(-len(loads) // _MOST_COLUMNS)
    style.grow(figure, (rows - 1) * _ROW_IN)
    columns = -(-len(loads) // rows)
    places = list(figure.subplots(rows, columns, squeeze=False).ravel())
    panels = places[: len(loads)]
    for unused in places[len(loads) :]:
        unused.remove()
    looks = overlay.looks(table["drive"])
    for axes, (pattern, share) in zip(panels, loads.itertuples(index=False), strict=True):
        part = table[(table["pattern"] == pattern) & (table["read_share_pct"] == share)]
        _panel(axes, part, looks)
        mix = f"{selection.access(pattern)} {format_mix(share)}"
        axes.set_title(f"{mix}, {_PURE[share]}" if share in _PURE else mix, fontsize=style.SMALL_PT, loc="left")
    _same_scale(panels, columns, [float(value) for value in table["shown"]], scale)
    _sizes(panels, columns, sorted(int(size) for size in table["block_size_bytes"].unique()))
    style.alarm(figure, selection.not_steady(steady_state))
    ax.legend(figure, panels[0])
    return figure


def _values(loop: pd.DataFrame, steady_state: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Return columns drive, measurement, `_KEY` and `metric`."""
    selection.require(loop, "cells")
    parts = [
        overlay.loop_values(part, steady_state[steady_state["measurement"] == measurement], [metric], _KEY).assign(
            measurement=measurement
        )
        for measurement, part in loop.groupby("measurement", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def _panel(axes: Axes, part: pd.DataFrame, looks: dict[str, overlay.Look]) -> None:
    """Draw later drives with smaller markers: drives of one interface often coincide."""
    for below, (drive, look) in zip(reversed(range(len(looks))), looks.items(), strict=True):
        line = part[part["drive"] == drive].sort_values("block_size_bytes")
        axes.plot(line["block_size_bytes"], line["shown"], color=look.colour, marker=look.marker, linestyle=look.dash,
                  markersize=_SMALLEST_PT * (1 + below / len(looks)), label=drive, gid="line")  # fmt: skip


def _same_scale(panels: list[Axes], columns: int, values: list[float], scale: Quantity) -> None:
    """Set one scale for all mixes, as readers compare them; the first of each row of panels names it."""
    for place, axes in enumerate(panels):
        ax.scale_y(axes, values, scale, log=ax.is_wide(values))
        if place % columns:
            axes.set_ylabel("")
            axes.tick_params(labelleft=False)


def _sizes(panels: list[Axes], columns: int, sizes: list[int]) -> None:
    """Name as many sizes on the x axis as fit without touching."""
    apart = log2(sizes[-1] / sizes[0]) * columns / _MOST_NAMED
    named = sizes[:1]
    for size in sizes[1:-1]:
        if min(log2(size / named[-1]), log2(sizes[-1] / size)) >= apart:
            named.append(size)
    named += sizes[1:][-1:]
    for axes in panels:
        ax.binary_axis(axes, sizes, format_kib, room=1.6, apart=1.0)
        ax.ticks(axes.xaxis, named, format_kib)
        axes.set_xlabel("Block size (KiB), log scale")
