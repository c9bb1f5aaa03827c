"""Values of the cells of a loop: window averages, rounds, and states of the drive."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_number, metric_name, quantity
from drivelab.figures.families.lines import BLOCK_SIZE, READS, Lines, apart, in_order
from drivelab.figures.families.rows import Across, Rows, dot, in_units
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
)  # fmt: skip

_PURE = {"100/0": "reads", "0/100": "writes"}


def measurement_2d(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw the window average of `metric` against block size, as in the TKperf report and the PTS.

    `cells` and `steady_state` hold one drive and run. For `max_latency_us` the maximum in the window is shown.
    """
    selection.require(steady_state, "steady_state")
    table = selection.window_averages(selection.one_measurement(cells), steady_state, metric)
    sizes, mixes = list(table.index), list(table.columns)
    table.columns = pd.Index(mixes, name="line")
    points = table.melt(ignore_index=False, value_name=metric).reset_index().dropna(subset=[metric])
    pattern, mix = points["line"].str.rpartition(" ")[0], points["line"].str.rpartition(" ")[2]
    line = (pattern + " " + format_size(int(sizes[0]))).str.strip()
    if len(sizes) == 1 and len(mixes) > 1 and mix.isin(list(_PURE)).all():  # two values make no line
        marks, across = in_units(points.assign(row=line + " " + mix + ", " + mix.map(_PURE), metric=metric, bar=True,
                                               value=points[metric], colour=style.colours(len(points))))  # fmt: skip
        figure = Rows(f"{metric_name(metric)} by read share", across).draw(marks)
        style.alarm(figure, selection.not_steady(steady_state))
        return figure
    if len(sizes) > 1 or len(mixes) == 1:
        title = f"{metric_name(metric)} by block size and mix"
        lines = Lines(title, (metric,), BLOCK_SIZE, looks=in_order, legend="Read/write\nmix (%)")
    else:
        points = points.assign(line=line, read_share_pct=mix.str.partition("/")[0].astype(float))
        points = points.sort_values(["line", "read_share_pct"])
        lines = Lines(f"{metric_name(metric)} by read share", (metric,), READS, looks=apart, legend="Block size")
    what = "maximum in the window" if metric == "max_latency_us" else "average of the window"
    return replace(lines, point=what).draw(points, steady_state)


def repeats(cells: pd.DataFrame, steady_state: pd.DataFrame, *, metric: str = "iops") -> Figure:
    """Draw each cell's median or window average (left) and its rounds as deviations (right).

    `cells` holds one drive and run; `steady_state` may be empty.
    """
    loop = selection.loop_cells(cells)
    used = selection.counted_rounds(loop, steady_state)
    centre = selection.cell_values(loop, steady_state, [metric], ["cell_label"]).set_index("cell_label")[metric]
    scale = quantity(metric, float(centre.max()))
    values = centre / scale.divisor
    across = Across.of(scale, values, f"\n{selection.value_name(steady_state).capitalize()}")
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
    axes = {"value": across, "rounds": Across("Rounds: from that value (%)", least=1.0)}
    figure = Rows(f"{scale.name} of each cell, round by round", axes, width_ratios=[1.0, 1.25]).draw(
        marks, [*handles, dot("counted round", colour)]
    )
    style.alarm(figure, selection.not_steady(steady_state))
    return figure


def new_and_working(cells: pd.DataFrame) -> Figure:
    """Draw a group of bars for each workload, a bar for each phase; `cells` holds the loops of one recording."""
    selection.require_one(cells, "recording", "cells")
    loop = selection.loop_cells(cells)
    loop = loop[loop["phase"].notna() & ~loop["cold"].astype(bool)].sort_values("step")
    phases = list(loop["phase"].drop_duplicates())
    if len(phases) < 2:
        raise ValueError("table 'cells' has no loops in several phases")
    table = loop.groupby(["workload", "phase"], sort=False, as_index=False)["bandwidth_mib_s"].median()
    colours = table["phase"].map(dict(zip(phases, style.colours(len(phases)), strict=True)))
    marks, across = in_units(table.assign(row=table["workload"], line=table["phase"], name=table["phase"], bar=True,
                                          metric="bandwidth_mib_s", value=table["bandwidth_mib_s"],
                                          colour=colours))  # fmt: skip
    factor = marks["value"] / marks["value"].groupby(marks["row"]).transform("first")
    times = [f" ({format_number(one)}\N{MULTIPLICATION SIGN})" for one in factor]
    marks["number"] += pd.Series(times, marks.index).where(marks["line"] != phases[0], "")
    return Rows(f"Bandwidth, {' and '.join(phases)}", across).draw(marks)
