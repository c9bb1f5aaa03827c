"""Values of the cells of a loop: window averages, rounds, states of the drive, and alignment."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.core.units import format_percentage, format_size
from drivelab.figures.base import counted, overlay, selection, style
from drivelab.figures.base.quantities import Texts, format_number, metric_name, quantity, with_minus
from drivelab.figures.families.lines import BLOCK_SIZE, READS, Lines, apart, in_order
from drivelab.figures.families.rows import Across, Rows, dot
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "measurement_2d", "Measurement, 2D",
        "Average over the measurement window against block size, a line for each R/W mix. For a test with one block "
        "size, the x axis is the read share.",
        when=("grid",), place=30, rows="loops", one_loop=True, of_window=True,
    ),
    FigureKind(
        "repeats", "Rounds of each cell",
        "Value of each cell (left) and deviations of its rounds (right). Filled dots count; hollow dots are cold "
        "rounds, which do not. A cell's value is the average of a steady-state window, else the median of an odd "
        "number of counted rounds. The closer the dots, the better the value repeats.",
        when=("repeats",), place=50, rows="loops",
    ),
    FigureKind(
        "new_and_working", "New and working",
        "Throughput of the same workloads in successive states of the drive, such as empty and after random writes "
        "past its capacity. The number is the median of the rounds; the factor is relative to the first state.",
        tables=("cells",), when=("states",), place=45, rows="loops",
    ),
    FigureKind(
        "alignment", "Aligned and unaligned",
        "The same I/Os aligned to the drive's pages and shifted off them. A shifted write changes two pages in part, "
        "which the drive must read first.",
        when=("shifted", "drives_alignment"), place=310,
    ),
)  # fmt: skip

_PURE = {"100/0": "reads", "0/100": "writes"}


@style.styled
def measurement_2d(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw the window average of `metric` against block size, as in the TKperf report and the PTS.

    `cells` and `steady_state` hold one drive and run. For `max_latency_us` the maximum in the window is shown.
    Raises ValueError for unsuitable tables.
    """
    selection.require(steady_state, "steady_state")
    table = selection.window_averages(selection.one_measurement(cells), steady_state, metric)
    sizes, mixes = list(table.index), list(table.columns)
    table.columns = pd.Index(mixes, name="line")
    points = table.melt(ignore_index=False, value_name=metric).reset_index().dropna(subset=[metric])
    pattern, mix = points["line"].str.rpartition(" ")[0], points["line"].str.rpartition(" ")[2]
    line = [f"{name} {format_size(int(sizes[0]))}".strip() for name in pattern]
    if len(sizes) == 1 and len(mixes) > 1 and mix.isin(list(_PURE)).all():  # two values make no line
        return _bars(points.assign(row=line, mix=mix), metric, steady_state)
    if len(sizes) > 1 or len(mixes) == 1:
        title = f"{metric_name(metric)} by block size and mix"
        lines = Lines(title, (metric,), BLOCK_SIZE, looks=in_order, legend="Read/write\nmix (%)")
    else:
        points = points.assign(line=line, read_share_pct=mix.str.partition("/")[0].astype(float))
        points = points.sort_values(["line", "read_share_pct"])
        lines = Lines(f"{metric_name(metric)} by read share", (metric,), READS, looks=apart, legend="Block size")
    what = "maximum in the window" if metric == "max_latency_us" else "average of the window"
    return replace(lines, point=what).draw(points, steady_state)


def _bars(points: pd.DataFrame, metric: str, steady_state: pd.DataFrame) -> Figure:
    """Draw pure reads and pure writes of one block size as bars."""
    scale = quantity(metric, float(points[metric].max()))
    value = points[metric] / scale.divisor
    marks = points.assign(
        row=points["row"] + " " + points["mix"] + ", " + points["mix"].map(_PURE), value=value, bar=True,
        number=[format_number(one) for one in value], colour=style.colours(len(points)),
    )  # fmt: skip
    figure = Rows(f"{scale.name} by read share", {"": Across(scale.label)}).draw(marks)
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


_LEAST_REACH_PCT = 1.0
_SIGNED = Texts(lambda value: with_minus(f"{value:+.3g}") if value else "0")


@style.styled
def repeats(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw each cell's median or window average (left) and its rounds as deviations (right).

    Filled dots count, hollow ones were cold. `cells` holds one drive and run; `steady_state` may be empty.
    Raises ValueError for unsuitable tables.
    """
    loop = counted.loop_cells(cells)
    used = counted.counted(loop, steady_state)
    centre = counted.values(loop, steady_state, [metric], ["cell_label"]).set_index("cell_label")[metric]
    scale = quantity(metric, float(centre.max()))
    values = centre / scale.divisor
    what = counted.what(steady_state).capitalize()
    across = Across.of(scale, values, f"\n{what}")
    left = pd.DataFrame({"row": values.index, "value": values.to_numpy(), "number": list(map(format_number, values)),
                         "bar": not across.log, "marker": "D", "panel": "value",
                         "colour": style.INK if across.log else "#cfdcea"})  # fmt: skip
    parts, colour = [left], style.colours(1)[0]
    for part, gid in ((loop[loop["cold"].astype(bool)], "cold"), (used, "counted")):
        deviation = 100 * (part[metric] / [centre[label] for label in part["cell_label"]] - 1)
        parts.append(part[["cell_label"]].assign(
            row=part["cell_label"], value=deviation, panel="rounds", colour=[colour] * len(part), gid=gid, bar=False,
            hollow=gid == "cold", name="cold round, not counted" if gid == "cold" else "counted round",
        ))  # fmt: skip
    marks = pd.concat(parts, ignore_index=True)
    handles = [dot("cold round, not counted", colour, hollow=True)] if (marks["gid"] == "cold").any() else []
    axes = {"value": across, "rounds": _Deviation("Rounds: from that value (%)", texts=_SIGNED)}
    figure = Rows(f"{scale.name} of each cell, round by round", axes, width_ratios=[1.0, 1.25]).draw(
        marks, [*handles, dot("counted round", colour)]
    )
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


@dataclass(frozen=True)
class _Deviation(Across):
    """An axis around 0 that does not enlarge tiny differences."""

    def set(self, axes: Axes, marks: pd.DataFrame) -> None:
        super().set(axes, marks)
        low, high = float(marks["value"].min()), float(marks["value"].max())
        room = 0.06 * (high - low)
        axes.set_xlim(min(low - room, -_LEAST_REACH_PCT), max(high + room, _LEAST_REACH_PCT))
        axes.axvline(0, color=style.INK, linewidth=1)


@style.styled
def new_and_working(cells: pd.DataFrame) -> Figure:
    """Draw a group of bars for each workload, a bar for each phase.

    `cells` holds the loops of one recording. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    loop = counted.loop_cells(cells)
    loop = loop[loop["phase"].notna() & ~loop["cold"].astype(bool)].sort_values("step")
    phases = list(loop["phase"].drop_duplicates())
    if len(phases) < 2:
        raise ValueError("table 'cells' has no loops in several phases")
    table = loop.groupby(["workload", "phase"], sort=False, as_index=False)["bandwidth_mib_s"].median()
    scale = quantity("bandwidth_mib_s", float(table["bandwidth_mib_s"].max()))
    value = table["bandwidth_mib_s"] / scale.divisor
    factor = value / value.groupby(table["workload"]).transform("first")
    marks = table.assign(
        row=table["workload"],
        line=table["phase"],
        value=value,
        number=[format_number(one) + ("" if phase == phases[0] else f" ({format_number(times)}\N{MULTIPLICATION SIGN})")
                for one, times, phase in zip(value, factor, table["phase"], strict=True)],
        name=table["phase"],
        colour=table["phase"].map(dict(zip(phases, style.colours(len(phases)), strict=True))),
        bar=True,
    )  # fmt: skip
    return Rows(f"{scale.name}, {' and '.join(phases)}", {"": Across(scale.label)}).draw(marks)


_OFFSET = r", unaligned by [^,]*"
"""Part of a workload's name in which aligned and unaligned cells differ."""


@style.styled
def alignment(cells: pd.DataFrame, steady_state: pd.DataFrame) -> Figure:
    """Draw the I/O rate of aligned (filled) and unaligned (hollow) cells, and the change in %.

    A row per workload, a line per drive; runs of a drive are averaged. Raises ValueError for unsuitable tables.
    """
    by = ["workload", "threads", "queue_depth", "alignment_offset_bytes"]
    pairs = _pairs(overlay.loop_values(cells, steady_state, ["iops"], by))
    looks = overlay.looks(pairs["drive"])
    offsets = [format_size(int(offset)) for offset in sorted(pairs["alignment_offset_bytes"].unique())]
    if len(offsets) == 1:  # the note says it once for all rows
        pairs["name"] = pairs["name"].str.replace(_OFFSET, "", regex=True)
    scale = quantity("iops", float(pairs[["aligned", "unaligned"]].to_numpy().max()))
    ends = pairs[["aligned", "unaligned"]] / scale.divisor
    alike = {
        "row": pairs["name"],
        "line": pairs["drive"],
        "colour": [looks[drive].colour for drive in pairs["drive"]],
        "marker": [looks[drive].marker for drive in pairs["drive"]],
    }
    change = [f"{format_percentage(share, signed=True)} %" for share in 100 * (ends["unaligned"] / ends["aligned"] - 1)]
    aligned = pd.DataFrame(alike).assign(name=pairs["drive"] + ", aligned", value=ends["aligned"], gid="aligned")
    shifted = pd.DataFrame(alike).assign(
        name=pairs["drive"] + ", unaligned", value=ends["unaligned"], gid="unaligned", hollow=True, number=change,
        low=ends["aligned"], high=ends["unaligned"],
    )  # fmt: skip
    handles = [dot(drive, look.colour, marker=look.marker) for drive, look in looks.items()]
    by_offset = f"; unaligned by {offsets[0]}" if len(offsets) == 1 else ""
    figure = Rows(f"{scale.name}, aligned and unaligned", {"": Across.of(scale, ends)}).draw(
        pd.concat([aligned, shifted]), [*handles, dot("hollow: unaligned", hollow=True)],
        notes=[f"each dot: {counted.what(steady_state)}{by_offset}"],
    )  # fmt: skip
    style.alarm(figure, selection.not_steady(steady_state))
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
