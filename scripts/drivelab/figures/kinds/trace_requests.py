"""Requests of a trace: times between arrivals, latencies, streams and sizes."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import LATENCY, format_latency, format_number, format_time
from drivelab.figures.families.curves import Curve, Curves, exceedance
from drivelab.figures.families.rows import Across, Rows
from drivelab.figures.kinds import trace as common
from drivelab.figures.registry import FigureKind

FIGURES = (
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


@style.styled
def trace_interarrival(interarrival: pd.DataFrame, overview: pd.DataFrame) -> Figure:
    """Draw the share of arrivals within a time, from `trace_interarrival` and `trace_overview`.

    Raises ValueError for unsuitable tables.
    """
    selection.require(overview, "trace_overview")
    title = "Time between arrivals"
    facts = overview.iloc[0]
    if interarrival.empty or not interarrival["high_ns"].max():
        return common.nothing(title, "All requests of the trace arrive at the same time.")
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
              drawstyle="steps-post", color=common.DIRECTIONS["read"], linewidth=2)  # fmt: skip
    axes.axvline(mean_us, color=style.INK, linestyle="--", linewidth=1.2, gid="mean", label="mean")
    ax.log_axis(axes, "x", least_us, largest_us, LATENCY)
    axes.set_ylim(0, 103)
    axes.set_xlabel("Time since the previous arrival (µs, ms, s), log scale")
    axes.set_ylabel("Arrivals within that time (%)")
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


@style.styled
def trace_latency(latency: pd.DataFrame) -> Figure:
    """Draw distributions with nines on the y axis, from table `trace_latency`; both axes logarithmic.

    Raises ValueError for an unsuitable table.
    """
    title = "Latency where the trace was captured"
    shown = [phase for phase in _PHASES if (latency["phase"] == phase).any()] if len(latency) else []
    if not shown:
        return common.nothing(title, "The trace has no completion times, so latencies are unknown.")
    figure = style.new_figure(title)
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    least = min(0.09, 0.5 / float(latency.groupby(["phase", "operation"])["requests"].sum().max()))
    for axes, phase in zip(panels, shown, strict=True):
        curves = []
        for operation, colour in common.DIRECTIONS.items():
            bins = latency[(latency["operation"] == operation) & (latency["phase"] == phase)]
            if bins.empty:
                continue
            share = exceedance(bins["high_ns"].clip(lower=1.0) / 1e3, bins["requests"])
            beyond = pd.Series(0.5 / bins["requests"].sum(), index=share.index[-1:])  # half way to a share of zero
            curves.append(Curve(operation, pd.concat([share, beyond]), colour, common.LINES[operation],
                                gid=f"{operation} {phase}"))  # fmt: skip
        label = f"{_PHASES[phase]}\n(µs, ms, s), log scale"
        Curves(label, "Faster requests (% of all), log scale", least).draw_in(axes, curves, narrow=len(shown) > 1)
        axes.label_outer()
    style.note(figure, "Latencies are of the drive and system on which the trace was captured")
    ax.legend(figure, panels[0], handles=[entry for axes in panels for entry in axes.get_legend_handles_labels()[0]])
    return figure


_SHOWN = 9
_OTHERS = "#b5b5b5"


@style.styled
def trace_streams(streams: pd.DataFrame) -> Figure:
    """Draw the shares of the nine most frequent streams and all others, from table `trace_streams`.

    Streams with a star are the fewest that cover 80 % of the reads and writes.
    """
    title = "I/O streams"
    if streams.empty:
        return common.nothing(title, "The trace has no reads or writes of data.")
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


@style.styled
def trace_sizes(sizes: pd.DataFrame) -> Figure:
    """Draw shares of reads and writes by length, of requests and of bytes, from table `trace_sizes`.

    More than 12 lengths are grouped in classes that end at powers of two. Raises ValueError for an unsuitable table.
    """
    selection.require(sizes, "trace_sizes")
    title = "Size mix"
    chosen = sizes[sizes["operation"].isin(list(_HATCHES)) & (sizes["length_bytes"] > 0)]
    if chosen.empty:
        return common.nothing(title, "The trace has no reads or writes of data.")
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
        colour=marks["operation"].map(common.DIRECTIONS),
        hatch=marks["operation"].map(_HATCHES),
        bar=True,
    )
    across = {what: Across(f"Share of {what} (%)") for what in ("requests", "bytes")}
    missing = [f"no {operation}s" for operation in _HATCHES if operation not in set(table["operation"])]
    figure = Rows(title, across).draw(marks, notes=missing)
    figure.axes[0].set_ylabel("Length of a request" if exact else "Length of a request, up to")
    return figure
