"""Traces: queue depth, footprint and addresses over time, arrivals, latencies, streams and sizes."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap, LogNorm, to_rgb
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from drivelab.core.units import format_amount, format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.overlay import Look
from drivelab.figures.base.quantities import (
    LATENCY,
    NUMBER,
    Quantity,
    elapsed,
    format_latency,
    format_number,
    format_time,
    volume,
)
from drivelab.figures.families.curves import Curve, Curves, exceedance
from drivelab.figures.families.lines import Lines, X
from drivelab.figures.families.rows import Across, Rows
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "trace_depth", "Queue depth over time",
        "Requests in flight in each interval, counted from queueing and from dispatch to completion: the mean above, "
        "the maximum below.",
        tables=("trace_over_time", "trace_overview"), when=("trace",), place=490, status="trace_overview",
    ),
    FigureKind(
        "trace_footprint", "Footprint over time",
        "Blocks that the trace has read or written so far, each counted once, and the blocks that it accesses in "
        "each interval.",
        tables=("trace_over_time",), when=("trace",), place=450, status="trace_overview",
    ),
    FigureKind(
        "trace_heat", "Access over time and address",
        "Start addresses of reads and writes over time; darker cells have more of them.",
        tables=("trace_heat", "trace_over_time"), when=("trace",), place=500, status="trace_overview",
    ),
    FigureKind(
        "trace_interarrival", "Time between arrivals",
        "Share of requests that arrived within a time after the previous request. A step to the left of the mean "
        "indicates bursts.",
        tables=("trace_interarrival", "trace_overview"), when=("trace",), place=480, status="trace_overview",
    ),
    FigureKind(
        "trace_latency", "Latency where the trace was captured",
        "Share of requests that were faster than a latency on the drive on which the trace was captured. Both axes "
        "are logarithmic: each step up is one more nine.",
        tables=("trace_latency",), when=("trace",), place=510, status="trace_overview",
    ),
    FigureKind(
        "trace_streams", "I/O streams",
        "I/O stream map after the SNIA Real World Storage Workload specification. A stream is reads or writes of one "
        "size, random or sequential. Shown are the shares of the nine most frequent streams. Streams with a star are "
        "the fewest that cover 80 % of reads and writes.",
        tables=("trace_streams",), when=("trace",), place=470, status="trace_overview",
    ),
    FigureKind(
        "trace_sizes", "Size mix",
        "Shares of reads and writes by length: of requests left, of bytes right.",
        tables=("trace_sizes",), when=("trace",), place=460, status="trace_overview",
    ),
)  # fmt: skip


DIRECTIONS = dict(zip(("read", "write", "flush", "discard", "write-zeroes"),
                      (style.COLOURBLIND[place] for place in (0, 1, 2, 4, 7)), strict=True))  # fmt: skip
"""Colour of each operation in all figures."""
LINES = {"read": "-", "write": "--", "flush": ":", "discard": "-.", "write-zeroes": (0, (1, 3))}
_LINE_IN = 0.165


def label(figure: Figure, overview: pd.Series) -> None:
    """Label a figure with the trace's name, size, marks and notes, from a row of `trace_overview`."""
    style.badges_of_trace(figure, overview["marks"])
    count, duration_s = _many(int(overview["requests"]), "requests"), float(overview["duration_s"])
    extent = f"{count} in {format_time(duration_s)}" if duration_s else f"{count} at one instant"
    style.label(figure, reduced=False, virtual="virtual" in overview["marks"], clock="wall",
                subject=f"{overview['trace']}: {extent}")  # fmt: skip
    if len(overview["notes"]):
        notes = "; ".join(overview["notes"])
        style.note(figure, notes[0].upper() + notes[1:])
        # The header lines would make the axes smaller.
        style.grow(figure, _LINE_IN * (2 + len(notes) // 95))


def _many(count: int, what: str) -> str:
    return f"{count:,} {what[:-1] if count == 1 else what}"


def nothing(title: str, reason: str) -> Figure:
    """Return a figure that says why there is nothing to show, as the file must exist."""
    figure = style.new_figure(title, height_in=2.0)
    figure.text(0.5, 0.3, textwrap.fill(reason, 80), ha="center", color=style.MUTED, gid="nothing", in_layout=False)
    return figure


def over_intervals(title: str, metrics: tuple[str, ...], rows: pd.DataFrame) -> Lines:
    """Return a figure of the values of intervals from `begin_s` to `end_s`, as steps; draw it from `steps`."""
    x = X.time("begin_s", float(rows["end_s"].max()), "Time since the first request", room=0.0)
    return Lines(title, metrics, x, stacked=True, steps=True, row_in=1.65, linear=metrics)


def steps(rows: pd.DataFrame, line: str) -> pd.DataFrame:
    """Return a line over intervals, in their order, which reaches the end of the last one."""
    rows = rows.sort_values("begin_s").assign(line=line)
    return pd.concat([rows, rows.tail(1).assign(begin_s=rows["end_s"].tail(1))])


def step_look(colour: str, dash: str = "-", *, filled: bool = False) -> Look:
    """Return the look of a line of steps."""
    return Look(to_rgb(colour), "", dash, filled=filled)


_DEPTHS = {"queue": ("queued to completed", "read", "-"),
           "dispatch": ("dispatched to completed: at the drive", "write", "--")}  # fmt: skip
"""Name, colour and dash of each depth."""


def trace_depth(over_time: pd.DataFrame, overview: pd.DataFrame) -> Figure:
    """Draw mean and maximum depth of each interval, from tables `trace_over_time` and `trace_overview`."""
    selection.require(over_time, "trace_over_time")
    selection.require(overview, "trace_overview")
    title, facts = "Queue depth over time", overview.iloc[0]
    if not facts["duration_s"]:
        return nothing(title, "The trace has no duration, so there is no depth over time.")
    known = [depth for depth in _DEPTHS if over_time[f"{depth}_depth_mean"].notna().any()]
    if not known:
        return nothing(title, "The trace has no completion times, so the depth is unknown.")
    largest = over_time[f"{known[0]}_depth_max"]
    table = pd.concat(
        steps(over_time, _DEPTHS[depth][0]).assign(
            mean=lambda rows, depth=depth: rows[f"{depth}_depth_mean"],
            max=lambda rows, depth=depth: rows[f"{depth}_depth_max"] if depth == known[0] else np.nan,
        )
        for depth in known
    )
    missing = int(facts["without_completion"])
    notes = [
        f"{missing:,} of {facts['requests']:,} requests have no completion time and are left out" if missing else "",
        "" if largest.notna().any() else "the largest depth is unknown: too many requests in flight",
    ]
    looks = {name: step_look(DIRECTIONS[like], dash) for name, like, dash in map(_DEPTHS.__getitem__, known)}
    quantities = {"mean": Quantity("Mean depth", "requests"), "max": Quantity("Largest depth", "requests")}
    lines = over_intervals(title, ("mean", "max"), over_time)
    return replace(lines, looks=lambda _: looks, quantities=quantities, note="; ".join(filter(None, notes))).draw(table)


def trace_footprint(over_time: pd.DataFrame) -> Figure:
    """Draw footprint since the beginning and working set of each interval, from `trace_over_time`."""
    selection.require(over_time, "trace_over_time")
    title = "Footprint over time"
    largest = float(over_time["footprint_bytes"].max())
    if not largest:
        return nothing(title, "The trace has no reads or writes of data.")
    width = format_time((over_time["end_s"] - over_time["begin_s"]).iloc[0])
    parts = {
        f"working set: within {width}": ("working_set_bytes", step_look(DIRECTIONS["write"], filled=True)),
        "footprint: all so far": ("footprint_bytes", step_look(DIRECTIONS["read"])),
    }
    table = pd.concat(steps(over_time.assign(bytes=over_time[column]), name) for name, (column, _) in parts.items())
    block = format_size(int(over_time["block_bytes"].iloc[0]))
    return replace(
        over_intervals(title, ("bytes",), over_time),
        looks=lambda _: {name: look for name, (_, look) in parts.items()},
        quantities={"bytes": volume(largest, "Blocks read or written")},
        note=f"Counted in whole blocks of {block}; discards and write-zeroes do not count",
    ).draw(table)


_COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.88, 0.0, 256)))
"""Dark means many; no colour is too pale for paper."""
_FEW = 100
"""Below this value of the darkest cell, ticks at powers of ten are too few."""


def trace_heat(heat: pd.DataFrame, over_time: pd.DataFrame) -> Figure:
    """Draw reads and writes in cells of time and address, from tables `trace_heat` and `trace_over_time`."""
    selection.require(over_time, "trace_over_time")
    title = "Access over time and address"
    if heat.empty:
        return nothing(title, "The trace has no reads or writes of data.")
    edges = np.append(over_time["begin_s"].to_numpy(float), over_time["end_s"].iloc[-1])
    times = elapsed(float(edges[-1]), "Time")
    low, high = int(heat["low_bytes"].min()), int(heat["high_bytes"].max())
    band = int(heat["high_bytes"].iloc[0] - heat["low_bytes"].iloc[0])
    address = volume(high, "Address")
    row = ((heat["low_bytes"] - low) // band).to_numpy(np.int64)
    column = np.searchsorted(edges, heat["begin_s"].to_numpy(float) + 1e-12, side="right") - 1
    bounds = np.linspace(low, high, round((high - low) / band) + 1) / address.divisor
    most = max(int(heat[["reads", "writes"]].to_numpy().max()), 2)
    norm = LogNorm(1, most)
    figure = style.new_figure(title, height_in=4.4)
    *panels, beside = figure.subplots(1, 3, width_ratios=(12, 12, 1))
    panels[1].sharey(panels[0])
    panels[1].tick_params(labelleft=False)
    for axes, name in zip(panels, ("reads", "writes"), strict=True):
        counts = np.zeros((len(bounds) - 1, len(over_time)))
        counts[row, column] = heat[name]
        # an image, as thousands of cells as paths would take megabytes
        mesh = axes.pcolormesh(edges / times.divisor, bounds, np.ma.masked_equal(counts, 0), norm=norm, cmap=_COLOURS,
                               rasterized=True, gid="map", label=name)  # fmt: skip
        axes.grid(visible=False)
        axes.set_title(_many(int(heat[name].sum()), name), fontsize=style.TEXT_PT)
        axes.set_xlabel(times.label)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        ax.write(axes.xaxis, NUMBER)
    panels[0].set_ylabel(address.label)
    ax.write(panels[0].yaxis, NUMBER)
    bar = figure.colorbar(mesh, cax=beside, label="Requests that begin in a cell, log scale")
    if most < _FEW:
        bar.ax.yaxis.set_major_locator(FixedLocator([at for at in (1, 2, 3, 5, 10, 20, 50) if at <= most]))
    ax.write(bar.ax.yaxis, NUMBER)
    bar.ax.minorticks_off()
    extent = f"from {format_amount(low)} to {format_amount(high)}"
    style.note(figure, f"A cell is {format_time(float(edges[1]))} long and {format_amount(band)} high; {extent}")
    return figure


def trace_interarrival(interarrival: pd.DataFrame, overview: pd.DataFrame) -> Figure:
    """Draw the share of arrivals within a time, from `trace_interarrival` and `trace_overview`."""
    selection.require(overview, "trace_overview")
    title = "Time between arrivals"
    facts = overview.iloc[0]
    if interarrival.empty or not interarrival["high_ns"].max():
        return nothing(title, "All requests of the trace arrive at the same time.")
    bins = interarrival.sort_values("low_ns")
    share = 100 * bins["requests"].cumsum() / bins["requests"].sum()
    at_once = 100 * float(bins["requests"][bins["high_ns"] == 0].sum()) / float(bins["requests"].sum())
    later = bins["high_ns"] > 0
    at_us = (bins["low_ns"] + bins["high_ns"])[later].to_numpy(float) / 2e3
    mean_us = float(facts["interarrival_mean_us"])
    least_us, largest_us = min(at_us[0], mean_us), max(at_us[-1], mean_us)
    figure = style.new_figure(title)
    axes = figure.subplots()
    axes.plot(np.r_[least_us / 2, at_us, largest_us * 2], np.r_[at_once, share[later], 100.0], gid="line",
              drawstyle="steps-post", color=DIRECTIONS["read"], linewidth=2)  # fmt: skip
    axes.axvline(mean_us, color=style.INK, linestyle="--", linewidth=1.2, gid="mean", label="mean")
    ax.log_axis(axes, "x", least_us, largest_us, LATENCY)
    axes.set(ylim=(0, 103), xlabel="Time since the previous arrival (µs, ms, s), log scale",
             ylabel="Arrivals within that time (%)")  # fmt: skip
    parts = [f"mean {format_latency(mean_us)}"]
    if np.isfinite(facts["interarrival_variation"]):
        parts.append(f"coefficient of variation {facts['interarrival_variation']:.2g} (Poisson: 1)")
    if at_once:
        parts.append(f"{at_once:.3g} % at the same time as the previous request")
    if facts["time_resolution_ns"] > 1:
        parts.append(f"times are multiples of {format_time(facts['time_resolution_ns'] / 1e9)}")
    style.note(figure, "; ".join(parts))
    ax.legend(figure, axes)
    return figure


_PHASES = {"Q2C": "Queued to completed (Q2C)", "D2C": "Dispatched to completed (D2C)"}


def trace_latency(latency: pd.DataFrame) -> Figure:
    """Draw distributions with nines on the y axis, from table `trace_latency`; both axes logarithmic."""
    title = "Latency where the trace was captured"
    shown = latency[latency["phase"].isin(list(_PHASES)) & latency["operation"].isin(list(DIRECTIONS))]
    if shown.empty:
        return nothing(title, "The trace has no completion times, so latencies are unknown.")
    panels: dict[str, list[Curve]] = {f"{name}\n(µs, ms, s), log scale": [] for phase, name in _PHASES.items()
                                      if (shown["phase"] == phase).any()}  # fmt: skip
    for (phase, operation), bins in shown.groupby(["phase", "operation"], sort=False):
        share = exceedance(bins["high_ns"].clip(lower=1.0) / 1e3, bins["requests"])
        beyond = pd.Series(0.5 / bins["requests"].sum(), index=share.index[-1:])  # half way to a share of zero
        panels[f"{_PHASES[phase]}\n(µs, ms, s), log scale"].append(
            Curve(operation, pd.concat([share, beyond]), to_rgb(DIRECTIONS[operation]), LINES[operation],
                  gid=f"{operation} {phase}")
        )  # fmt: skip
    least = min(0.09, 0.5 / float(shown.groupby(["phase", "operation"])["requests"].sum().max()))
    figure = Curves("Faster requests (% of all), log scale", least).draw(title, panels)
    style.note(figure, "Latencies are of the drive and system on which the trace was captured")
    return figure


_SHOWN = 9
_OTHERS = "#b5b5b5"


def trace_streams(streams: pd.DataFrame) -> Figure:
    """Draw the shares of the nine most frequent streams and all others, from table `trace_streams`.

    Streams with a star are the fewest that cover 80 % of the reads and writes.
    """
    title = "I/O streams"
    if streams.empty:
        return nothing(title, "The trace has no reads or writes of data.")
    top = streams.sort_values("rank").head(_SHOWN)
    rest = streams[streams["rank"] > _SHOWN]
    palette = [colour for number, colour in enumerate(style.colours(10)) if number != 7]  # all others are grey
    marks = pd.DataFrame({"row": top["stream"] + top["main"].map({True: " *", False: ""}), "value": top["share_pct"],
                          "colour": palette[: len(top)]})  # fmt: skip
    if len(rest):
        others = {"row": f"{len(rest):,} others", "value": float(rest["share_pct"].sum()), "colour": _OTHERS}
        marks = pd.concat([marks, pd.DataFrame([others])])
    number = [f"{share:.1f}" for share in marks["value"]]
    count, main = len(streams), int(streams["main"].sum())
    covers = f"* the {main:,} most frequent" if main > 1 else "* one stream"
    return Rows(title, {"": Across("Share of reads and writes (%)")}).draw(
        marks.assign(bar=True, gid="shares", number=number), notes=[
            f"{covers} of {count:,} cover{'' if main > 1 else 's'} {streams[streams['main']]['share_pct'].sum():.0f} % "
            "of reads and writes; SEQ: begins where one of the 32 previous requests of the same kind ended"
        ],
    )  # fmt: skip


_MOST_BARS = 12
_HATCHES = {"read": "", "write": "///"}


def trace_sizes(sizes: pd.DataFrame) -> Figure:
    """Draw shares of reads and writes by length, of requests and of bytes, from table `trace_sizes`.

    More than 12 lengths are grouped in classes that end at powers of two.
    """
    selection.require(sizes, "trace_sizes")
    title = "Size mix"
    chosen = sizes[sizes["operation"].isin(list(_HATCHES)) & (sizes["length_bytes"] > 0)]
    if chosen.empty:
        return nothing(title, "The trace has no reads or writes of data.")
    lengths = chosen["length_bytes"].to_numpy(np.int64)
    exact = np.unique(lengths).size <= _MOST_BARS
    upto = lengths if exact else 2 ** np.ceil(np.log2(lengths)).astype(np.int64)
    chosen = chosen.assign(row=upto, bytes=chosen["requests"] * chosen["length_bytes"].astype(float))
    table = chosen.groupby(["row", "operation"], as_index=False)[["requests", "bytes"]].sum()
    parts = [
        table.assign(panel=what, value=100 * table[what] / table[what].sum(), gid=table["operation"] + f" {what}")
        for what in ("requests", "bytes")
    ]
    marks = pd.concat(parts)
    marks = marks.assign(
        text=[format_size(int(length)) for length in marks["row"]],
        line=marks["operation"],
        number=[format_number(share) for share in marks["value"]],
        name=marks["operation"] + "s",
        colour=marks["operation"].map(DIRECTIONS),
        hatch=marks["operation"].map(_HATCHES),
        bar=True,
    )
    across = {what: Across(f"Share of {what} (%)") for what in ("requests", "bytes")}
    missing = [f"no {operation}s" for operation in _HATCHES if operation not in set(table["operation"])]
    figure = Rows(title, across).draw(marks, notes=missing)
    figure.axes[0].set_ylabel("Length of a request" if exact else "Length of a request, up to")
    return figure
