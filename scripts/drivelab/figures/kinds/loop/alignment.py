"""Alignment: performance loss of each drive when I/Os straddle its pages."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.core.units import format_percentage, format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="alignment",
        title="Aligned and unaligned",
        caption=(
            "The same I/Os aligned to the drive's pages and shifted off them. A shifted write changes two "
            "pages in part, which the drive must read first."
        ),
        tables=("cells", "steady_state"),
        when=("shifted", "drives_alignment"),
        place=310,
    ),
)

_OFFSET = r", unaligned by [^,]*"
"""Part of a workload's name in which aligned and unaligned cells differ."""
_LINE_IN = 0.21


@style.styled
def alignment(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the I/O rate of aligned (filled) and unaligned (hollow) cells, and the change in %.

    A row per workload and drive; runs of a drive are averaged. Raises ValueError for unsuitable tables.
    """
    by = ["workload", "threads", "queue_depth", "alignment_offset_bytes"]
    table = overlay.loop_values(cells, steady_state, ["iops"], by)
    pairs = _pairs(table)
    looks = overlay.looks(table["drive"])
    offsets_of = [format_size(int(offset)) for offset in sorted(pairs["alignment_offset_bytes"].unique())]
    if len(offsets_of) == 1:  # the note says it once for all rows
        pairs["name"] = pairs["name"].str.replace(_OFFSET, "", regex=True)
    names = list(pairs["name"].drop_duplicates())
    scale = quantity("iops", float(pairs[["aligned", "unaligned"]].to_numpy().max()))
    figure = style.new_figure(f"{scale.name}, aligned and unaligned",
                              height_in=max(3.0, 1.8 + (_LINE_IN * len(looks) + 0.12) * len(names)))  # fmt: skip
    by_offset = f"; unaligned by {offsets_of[0]}" if len(offsets_of) == 1 else ""
    style.note(figure, f"each dot: {counted.what(steady_state)}{by_offset}")
    axes = figure.subplots()
    offsets = dict(zip(looks, (np.arange(len(looks)) - (len(looks) - 1) / 2) * 0.78 / len(looks), strict=True))
    for drive, part in pairs.groupby("drive", sort=False):
        _dots(axes, part.assign(y=[names.index(name) + offsets[str(drive)] for name in part["name"]]),
              looks[str(drive)], str(drive), scale.divisor)  # fmt: skip
    values = (pairs[["aligned", "unaligned"]].to_numpy() / scale.divisor).ravel().tolist()
    if ax.is_wide(values):
        ax.log_axis(axes, "x", min(values), max(values))
        axes.set_xlabel(f"{scale.label}, log scale")
    else:
        axes.set_xlim(0, max(values) * 1.06)
        ax.plain_numbers(axes, "x")
        axes.set_xlabel(scale.label)
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    style.alarm(figure, selection.not_steady(steady_state))
    handles = [Line2D([], [], marker=look.marker, color=look.colour, linestyle="none", label=drive)
               for drive, look in looks.items()]  # fmt: skip
    hollow = Line2D([], [], marker="o", color=style.MUTED, markerfacecolor="white", linestyle="none",
                    label="hollow: unaligned")  # fmt: skip
    ax.legend(figure, axes, handles=[*handles, hollow])
    return figure


def _pairs(table: pd.DataFrame) -> pd.DataFrame:
    """Return columns drive, name, aligned, unaligned: each unaligned cell with the aligned cell of the same load."""
    load = ["drive", "base", "threads", "queue_depth"]
    table = table.assign(base=table["workload"].str.replace(_OFFSET, "", regex=True))
    shifted = table["alignment_offset_bytes"] != 0
    pairs = table[shifted].merge(table[~shifted][[*load, "iops"]], on=load, suffixes=("_unaligned", "_aligned"))
    if pairs.empty:
        raise ValueError("table 'cells' has no aligned and unaligned cells of one workload")
    several = pairs[["threads", "queue_depth"]].drop_duplicates().shape[0] > 1
    pairs["name"] = [f"{row.workload} T{row.threads}Q{row.queue_depth}" if several else str(row.workload)
                     for row in pairs.itertuples()]  # fmt: skip
    return pairs.rename(columns={"iops_aligned": "aligned", "iops_unaligned": "unaligned"})


def _dots(axes: Axes, part: pd.DataFrame, look: overlay.Look, drive: str, divisor: float) -> None:
    y = part["y"].to_numpy(dtype=float)
    ends = [part[column].to_numpy(dtype=float) / divisor for column in ("aligned", "unaligned")]
    ax.whiskers(
        axes, ends[0], ends[1], y, color=look.colour, linewidth=2, alpha=0.5, label=f"{drive}, change", gid="change"
    )
    for x, face, word in ((ends[0], look.colour, "aligned"), (ends[1], "white", "unaligned")):
        axes.plot(x, y, linestyle="none", marker=look.marker, markersize=7, markeredgecolor=look.colour,
                  markerfacecolor=face, label=f"{drive}, {word}", gid=word)  # fmt: skip
    for place, aligned, unaligned in zip(y, *ends, strict=True):
        penalty = format_percentage(100 * (unaligned / aligned - 1), signed=True)
        axes.annotate(f"{penalty} %", (1.0, place), (6, 0), va="center",
                      xycoords=("axes fraction", "data"), textcoords="offset points", fontsize=style.SMALL_PT,
                      gid="penalty", annotation_clip=False)  # fmt: skip
