"""I/O rate against the share of reads: the bathtub curve of drives, and lines by block size or queue depth."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from drivelab.analysis.detectors.bathtub import LEAST_BELOW_SHARING_PCT, LEAST_INDEX_PCT, bathtub_index
from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import Quantity, quantity, with_minus
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        name="bathtub",
        title="Reads and writes mixed, the bathtub curve",
        caption=(
            "I/O rate against the share of reads. Reads wait behind writes and garbage collection, so mixes "
            "are often slower than the straight line between pure reads and pure writes. The first number is "
            "the largest distance from that line."
        ),
        tables=("cells", "steady_state"),
        when=("mixes", "drives_mixes"),
        place=300,
    ),
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
_SHARE = r" \d+/\d+"
"""Part of a workload's name (`RND 4KiB 65/35`) in which its mixes differ."""
_GROUP = ["load", "threads", "queue_depth"]
_MOST_PANELS = 8
_IN_A_ROW = 4
"""Pairs of numbers in a line at the top of a panel."""
_NUMBERS_PT = 80
_ROW_SHARE = 0.095
"""Share of a panel's height that a line of numbers takes."""
_NOTE_IN = 0.36
_HEADING = "from dotted line / from sharing"
_BETWEEN = (0, (1.0, 2.5))
"""Sparse dots, unlike the dashes of the drives' lines."""


@style.styled
def bathtub(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the I/O rate of each mix of reads and writes, a line per drive and a panel per load.

    The dotted line joins pure reads and pure writes. The first number, the bathtub index, is the distance of the lowest
    mix from that line; the second is its distance from the rate that sharing the time explains. Both numbers are those
    of the detector and are bold if they reach its thresholds; the detector also tests them against scatter. Runs of a
    drive are averaged. Raises ValueError for unsuitable tables.
    """
    by = ["workload", "threads", "queue_depth", "read_share_pct"]
    table = overlay.loop_values(cells, steady_state, ["iops"], by)
    table = table.assign(load=table["workload"].str.replace(_SHARE, "", n=1, regex=True))
    groups = [(key, part) for key, part in table.groupby(_GROUP, sort=False) if _is_whole(part)]
    if not groups:
        raise ValueError("table 'cells' has no workload with reads alone, writes alone and a mix of both")
    shown = groups[:_MOST_PANELS]
    height_in = style.HEIGHT_IN if len(shown) == 1 else 1.2 + 2.4 * len(shown)
    figure = style.new_figure("Reads and writes mixed", height_in=height_in)
    note = (
        f"each point: {counted.what(steady_state)}; numbers: distance of the lowest mix from the dotted line, and "
        "from the rate if reads and writes share the time; bold: both reach the thresholds of a bathtub "
        f"(-{LEAST_INDEX_PCT:g} and -{LEAST_BELOW_SHARING_PCT:g} % or less)"
    )
    if len(shown) < len(groups):
        note += f"; {len(shown)} of {len(groups)} loads, all are in the tables"
    style.note(figure, with_minus(note))
    style.grow(figure, _NOTE_IN)
    overlay.note_coinciding(figure, table, by, ["iops"])
    panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]  # side by side they would overlap on a phone
    looks = overlay.looks(table["drive"])
    several_loads = table[_GROUP[1:]].drop_duplicates().shape[0] > 1
    for axes, (key, part) in zip(panels, shown, strict=True):
        _panel(axes, part, looks)
        load = f" T{key[1]}Q{key[2]}" if several_loads else ""
        axes.set_title(f"{key[0]}{load}", fontsize=style.SMALL_PT, loc="left")
    style.alarm(figure, selection.not_steady(steady_state))
    lines = [Line2D([], [], color=look.colour, marker=look.marker, label=drive) for drive, look in looks.items()]
    for line, look in zip(lines, looks.values(), strict=True):
        line.set(linestyle=look.dash)
    ends = Line2D([], [], color=style.MUTED, linestyle=_BETWEEN, linewidth=1, label="between pure ends")
    ax.legend(figure, panels[0], handles=[*lines, ends])
    return figure


def _is_whole(part: pd.DataFrame) -> bool:
    """Return whether each drive has both ends and a mix between them."""
    whole = part.groupby("drive")["read_share_pct"].agg(lambda shares: {0, 100} < set(shares))
    return bool(whole.all())


def _panel(axes: Axes, part: pd.DataFrame, looks: dict[str, overlay.Look]) -> None:
    scale: Quantity = quantity("iops", float(part["iops"].max()))
    indices = []
    for drive, look in looks.items():
        mixes = part[part["drive"] == drive].set_index("read_share_pct")["iops"].sort_index()
        if mixes.empty:
            continue
        axes.plot(mixes.index, mixes / scale.divisor, color=look.colour, marker=look.marker, linestyle=look.dash,
                  label=drive, gid="line")  # fmt: skip
        axes.plot([0, 100], [mixes[0] / scale.divisor, mixes[100] / scale.divisor], color=look.colour, linewidth=1,
                  linestyle=_BETWEEN, label=f"{drive}, between the ends", gid="end to end")  # fmt: skip
        if (index := bathtub_index(mixes.reset_index())) is not None:
            indices.append((look.colour, index))
    ax.scale_y(axes, [float(value) / scale.divisor for value in part["iops"]], scale)
    lines = 1 + -(-len(indices) // _IN_A_ROW)
    axes.set_ylim(0, axes.get_ylim()[1] / (1 - _ROW_SHARE * lines))
    at: dict[str, Any] = {"va": "top", "ha": "left", "xycoords": "axes fraction", "textcoords": "offset points",
                          "fontsize": style.SMALL_PT}  # fmt: skip
    axes.annotate(_HEADING, (0.02, 0.97), (0, 0), color=style.MUTED, gid="index heading", **at)
    for place, (colour, index) in enumerate(indices):
        row, column = divmod(place, _IN_A_ROW)
        words = f"{-index.index_pct:+.0f} / {-index.below_sharing_pct:+.0f} %"
        axes.annotate(with_minus(words), (0.02, 0.97), (_NUMBERS_PT * column, -11 * (row + 1)), color=colour,
                      weight="bold" if index.is_one else "normal", gid="index", **at)  # fmt: skip
    axes.set_xlim(-4, 104)
    axes.xaxis.set_major_locator(FixedLocator([0, 20, 40, 60, 80, 100]))
    axes.set_xlabel("Reads (% of the I/Os)")


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
