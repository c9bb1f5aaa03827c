"""I/O rate against the share of reads, bandwidth against the position, and drives by block size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.analysis.detectors.bathtub import LEAST_BELOW_SHARING_PCT, LEAST_INDEX_PCT, bathtub_index
from drivelab.core.units import format_size
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import format_mix, metric_name, with_minus
from drivelab.figures.families.lines import BLOCK_SIZE, POSITION, READS, Lines, Panel, apart, by_drive, in_order
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        "bathtub", "Reads and writes mixed, the bathtub curve",
        "I/O rate against the share of reads. Reads wait behind writes and garbage collection, so mixes are often "
        "slower than the straight line between pure reads and pure writes. The first number is the largest distance "
        "from that line.",
        when=("mixes", "drives_mixes"), place=300,
    ),
    FigureKind(
        "mix_lines", "Mixes by block size or queue depth",
        "I/O rate against the share of reads, a line for each block size or queue depth. Level lines belong to a "
        "drive whose rate does not depend on the mix; a line that sags shows that mixes are slower than reads and "
        "writes alone.",
        when=("mix_lines",), place=295,
    ),
    FigureKind(
        "zones", "Bandwidth by position",
        "Bandwidth at positions over the capacity. The outer tracks of a hard disk, where its addresses begin, hold "
        "more than the inner ones, so its curve falls. A flash drive has a level line.",
        when=("zones", "drives_zones"), place=305,
    ),
    FigureKind(
        "sizes_of_drives", "By block size",
        'Reads and writes of each drive by block size, after "TP 2D" of the PTS throughput test. Each block size is '
        "a separate measurement after a purge and a fill. Where the line is flat, the block size does not matter.",
        when=("sizes",), place=440, of_window=True,
    ),
    FigureKind(
        "grid_of_drives", "By block size, each mix",
        "Each drive by block size, a panel for each mix of reads and writes, all with one scale. A point is the "
        "average over the steady-state window of its drive.",
        when=("drives_grid",), place=345, one_loop=True, of_window=True, draw="sizes_of_drives",
    ),
)  # fmt: skip

_SHARE = r" \d+/\d+"
"""Part of a workload's name (`RND 4KiB 65/35`) in which its mixes differ."""
_IN_A_ROW = 4
"""Pairs of numbers in a line at the top of a panel."""
_NUMBERS_PT = 80
_ROW_SHARE = 0.095
"""Share of a panel's height that a line of numbers takes."""
_HEADING = "from dotted line / from sharing"
_BETWEEN: Any = (0, (1.0, 2.5))
"""Sparse dots, unlike the dashes of the drives' lines."""


def _wholes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return a panel per load of which each drive has both pure ends and a mix, a line per drive, runs averaged."""
    by = ["workload", "threads", "queue_depth", "read_share_pct"]
    table = overlay.loop_values(cells, steady_state, ["iops"], by).sort_values("read_share_pct", kind="stable")
    panel = table["workload"].str.replace(_SHARE, "", n=1, regex=True)
    if table[["threads", "queue_depth"]].drop_duplicates().shape[0] > 1:
        panel += [f" T{row.threads}Q{row.queue_depth}" for row in table.itertuples()]
    table = table.assign(panel=panel, line=table["drive"])
    shares = table.groupby(["panel", "drive"])["read_share_pct"].agg(lambda shares: {0, 100} < set(shares))
    is_whole = shares.astype(bool).groupby("panel").all()
    table = table[table["panel"].map(is_whole)]
    if table.empty:
        raise ValueError("table 'cells' has no workload with reads alone, writes alone and a mix of both")
    return table


def _depths(panel: Panel) -> Sequence[Artist]:
    """Join pure reads and pure writes by a dotted line, and say how far below it each drive is.

    The first number, the bathtub index, is the distance of the lowest mix from that line; the second is its distance
    from the rate that sharing the time explains. Both are those of the detector and are bold if they reach its
    thresholds; the detector also tests them against scatter.
    """
    axes, divisor, indices = panel.axes, panel.scale.divisor, []
    for drive, line in panel.points.groupby("drive", sort=False):
        mixes, look = line.set_index("read_share_pct")["iops"], panel.looks[str(drive)]
        axes.plot([0, 100], [mixes[0] / divisor, mixes[100] / divisor], color=look.colour, linewidth=1,
                  linestyle=_BETWEEN, label=f"{drive}, between the ends", gid="end to end")  # fmt: skip
        if (index := bathtub_index(mixes.reset_index())) is not None:
            indices.append((look.colour, index))
    axes.set_ylim(0, axes.get_ylim()[1] / (1 - _ROW_SHARE * (1 + -(-len(indices) // _IN_A_ROW))))
    at: dict[str, Any] = {"va": "top", "ha": "left", "xycoords": "axes fraction", "textcoords": "offset points",
                          "fontsize": style.SMALL_PT}  # fmt: skip
    axes.annotate(_HEADING, (0.02, 0.97), (0, 0), color=style.MUTED, gid="index heading", **at)
    for place, (colour, index) in enumerate(indices):
        row, column = divmod(place, _IN_A_ROW)
        words = f"{-index.index_pct:+.0f} / {-index.below_sharing_pct:+.0f} %"
        axes.annotate(with_minus(words), (0.02, 0.97), (_NUMBERS_PT * column, -11 * (row + 1)), color=colour,
                      weight="bold" if index.is_one else "normal", gid="index", **at)  # fmt: skip
    return [Line2D([], [], color=style.MUTED, linestyle=_BETWEEN, linewidth=1, label="between pure ends")]


bathtub = Lines(
    "Reads and writes mixed", ("iops",), READS, _wholes, columns=1, most=8, row_in=2.4, linear=("iops",), marks=_depths,
    note=with_minus(
        "numbers: distance of the lowest mix from the dotted line, and from the rate if reads and writes share the "
        "time; bold: both reach the thresholds of a bathtub "
        f"(-{LEAST_INDEX_PCT:g} and -{LEAST_BELOW_SHARING_PCT:g} % or less)"
    ),
)  # fmt: skip

_LOAD = ["pattern", "block_size_bytes", "alignment_offset_bytes", "threads", "queue_depth"]


def _mixes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return the points of one drive, a line for each load with several mixes; raises ValueError for fewer than two."""
    selection.require_one(cells, "drive", "cells")
    table = overlay.loop_values(cells, steady_state, ["iops"], [*_LOAD, "read_share_pct"])
    table = table.fillna({"alignment_offset_bytes": 0})
    table = table[table.groupby(_LOAD)["iops"].transform("size") > 2].sort_values([*_LOAD, "read_share_pct"])
    if len(table[_LOAD].drop_duplicates()) < 2:
        raise ValueError("table 'cells' has no two loads with several mixes of reads and writes")
    varied = {column for column in _LOAD if table[column].nunique() > 1}
    return table.assign(line=[_name(row, varied) for row in table.itertuples()])


mix_lines = Lines("Mixes of reads and writes", ("iops",), READS, _mixes, in_order)


def _name(load: Any, varied: set[str]) -> str:
    """Return what distinguishes a load from the others, such as `4KiB` or `T1Q32`."""
    offset = int(load.alignment_offset_bytes)
    parts = {
        "pattern": selection.access(load.pattern),
        "block_size_bytes": format_size(int(load.block_size_bytes)),
        "alignment_offset_bytes": f"unaligned by {format_size(offset)}" if offset else "aligned",
    }
    names = [text for column, text in parts.items() if column in varied]
    return " ".join([*names, demand(load.threads, load.queue_depth)] if varied - parts.keys() else names)


_POSITION = r", from [^,]*"
"""Part of a workload's name in which cells at different positions differ."""


@style.styled
def zones(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the bandwidth over the middle of each active range, a line for each workload and drive.

    Runs of a drive are averaged. Raises ValueError for unsuitable tables and fewer than three positions.
    """
    load = ["workload", "threads", "queue_depth"]
    table = overlay.loop_values(cells, steady_state, ["bandwidth_mib_s"], [*load, "range_start", "range_share"])
    table["workload"] = table["workload"].str.replace(_POSITION, "", regex=True)
    table["position_pct"] = 100 * (table["range_start"] + table["range_share"] / 2)
    table = table[table.groupby(load)["position_pct"].transform("nunique") >= 3].sort_values("position_pct")
    if table.empty:
        raise ValueError("table 'cells' has no workload at three or more positions")
    several = table["drive"].nunique() > 1
    line = table["drive"] + ", " + table["workload"] if several else table["workload"]
    looks = by_drive if several else apart
    shown = Lines("Bandwidth by position", ("bandwidth_mib_s",), POSITION, looks=looks, linear=("bandwidth_mib_s",))
    return shown.draw(table.assign(line=line), steady_state)


_KEY = ["pattern", "read_share_pct", "block_size_bytes"]
_PURE = {100: ", reads", 0: ", writes"}


@style.styled
def sizes_of_drives(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the tracked metric of the loops against block size, panels for reads and writes.

    Each drive has a line; its runs are averaged. After "TP 2D" of the PTS throughput test, which measures each block
    size separately. Raises ValueError for unsuitable tables, and for loops that track different metrics.
    """
    selection.require(cells, "cells")
    metric = str(selection.require_one(steady_state, "metric", "steady_state"))
    loop = selection.rows(cells, "cells", kind="loop")
    several = loop["measurement"].nunique() > 1
    table = pd.concat(
        overlay.loop_values(part, steady_state[steady_state["measurement"] == measurement], [metric], _KEY)
        for measurement, part in loop.groupby("measurement", sort=False)
    )
    order = table["drive"].map(list(overlay.looks(table["drive"])).index)
    table = table.assign(line=table["drive"], order=order)
    table = table.sort_values(["order", *_KEY], ascending=[True, True, False, True])
    panel = [f"{selection.access(row.pattern)} {format_mix(row.read_share_pct)}{_PURE.get(row.read_share_pct, '')}"
             for row in table.itertuples()]  # fmt: skip
    return Lines(
        f"{metric_name(metric)} by block size", (metric,), BLOCK_SIZE, columns=3, same_y=True,
        note="of a separate measurement each" if several else "",
    ).draw(table.assign(panel=panel), steady_state)  # fmt: skip
