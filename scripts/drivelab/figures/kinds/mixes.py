"""I/O rate against the share of reads, bandwidth against the position, and drives by block size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.analysis.detectors.bathtub import LEAST_BELOW_SHARING_PCT, LEAST_INDEX_PCT, bathtub_index
from drivelab.figures.base import overlay, selection, style
from drivelab.figures.base.quantities import format_mix, metric_name, with_minus
from drivelab.figures.families.lines import BLOCK_SIZE, POSITION, READS, Lines, Panel, apart, by_drive, in_order
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import demand

FIGURES = (
    FigureKind(
        "bathtub", "Reads and writes mixed, the bathtub curve",
        "I/O rate against the share of reads, a line for each drive or, of one drive, for each load. Reads wait behind "
        "writes and garbage collection, so mixes are often slower than the straight line between pure reads and pure "
        "writes. The first number is the largest distance from that line. Level lines belong to a drive whose rate "
        "does not depend on the mix.",
        when=("mixes", "drives_mixes"), place=300,
    ),
    FigureKind(
        "zones", "Bandwidth by position",
        "Bandwidth at positions over the capacity. The outer tracks of a hard disk, where its addresses begin, hold "
        "more than the inner ones, so its curve falls. A flash drive has a level line.",
        when=("zones", "drives_zones"), place=305,
    ),
    FigureKind(
        "sizes_of_drives", "By block size",
        'Each drive by block size, after "TP 2D" of the PTS throughput test, a panel for each mix of reads and writes, '
        "all with one scale. A point is the average over the steady-state window of its drive; a note says if each "
        "block size is a separate measurement. Where the line is flat, the block size does not matter.",
        when=("sizes", "drives_grid"), place=345, one_loop=True, of_window=True,
    ),
)  # fmt: skip

_SHARE = r" \d+/\d+"
"""Part of a workload's name (`RND 4KiB 65/35`) in which its mixes differ."""
_BETWEEN: Any = (0, (1.0, 2.5))
"""Sparse dots, unlike the dashes of the drives' lines."""
_LOAD = ["pattern", "block_size_bytes", "threads", "queue_depth"]


def _wholes(cells: pd.DataFrame, steady_state: pd.DataFrame) -> pd.DataFrame:
    """Return the loads of which each drive has both pure ends and a mix, runs averaged; raises ValueError for none.

    Several drives have a panel for each load, with the numbers of the deepest drive; of one, each load is a line.
    """
    table = overlay.loop_values(cells, steady_state, ["iops"], [*_LOAD, "workload", "read_share_pct"])
    load = table["workload"].str.replace(_SHARE, "", n=1, regex=True)
    if len(table[["threads", "queue_depth"]].drop_duplicates()) > 1:
        load += [f" {demand(*point)}" for point in zip(table["threads"], table["queue_depth"], strict=True)]
    table = table.assign(load=load).sort_values([*_LOAD, "read_share_pct"], kind="stable")
    drives, parts = table["drive"].nunique(), []
    for name, part in table.groupby("load", sort=False):
        lines = dict(iter(part.groupby("drive", sort=False)))
        if sum({0, 100} < set(line["read_share_pct"]) for line in lines.values()) < drives:
            continue
        below = {drive: index for drive, line in lines.items() if (index := bathtub_index(line)) is not None}
        drive, deepest = max(below.items(), key=lambda one: one[1].index_pct)
        numbers = with_minus(f"{-deepest.index_pct:+.0f} / {-deepest.below_sharing_pct:+.0f} %") + " *" * deepest.is_one
        names = {"panel": f"{name}; deepest: {drive} {numbers}"} if drives > 1 else {"line": f"{name}: {numbers}"}
        parts.append(part.assign(line=part["drive"]).assign(**names))
    if not parts:
        raise ValueError("table 'cells' has no workload with reads alone, writes alone and a mix of both")
    return pd.concat(parts)


def _between_ends(panel: Panel) -> Sequence[Artist]:
    """Join pure reads and pure writes by a dotted line, which a logarithmic axis bends."""
    at = np.linspace(0, 100, 21)
    for name, line in panel.points.groupby("line", sort=False):
        ends = panel.shown(line[line["read_share_pct"].isin([0, 100])])
        panel.axes.plot(at, np.interp(at, [0, 100], ends), color=panel.looks[str(name)].colour, linewidth=1,
                        linestyle=_BETWEEN, label=f"{name}, between the ends", gid="end to end")  # fmt: skip
    return [Line2D([], [], color=style.MUTED, linestyle=_BETWEEN, linewidth=1, label="between pure ends")]


bathtub = Lines(
    "Reads and writes mixed", ("iops",), READS, _wholes, columns=1, most=8, row_in=2.4, marks=_between_ends,
    looks=lambda table: by_drive(table) if "panel" in table else in_order(table),
    note=with_minus(
        "numbers: distance of the lowest mix from the dotted line, and from the rate if reads and writes share the "
        "time; *: both reach the thresholds of a bathtub "
        f"(-{LEAST_INDEX_PCT:g} and -{LEAST_BELOW_SHARING_PCT:g} % or less)"
    ),
)  # fmt: skip

_POSITION = r", from [^,]*"
"""Part of a workload's name in which cells at different positions differ."""


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
