"""Sizes and I/O streams of a trace, after SNIA RWSW."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.core.units import format_size
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.kinds.trace import trace_common as common
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="trace_streams",
        title="I/O streams",
        caption=(
            "I/O stream map after the SNIA Real World Storage Workload specification. A stream is reads or "
            "writes of one size, random or sequential. Shown are the shares of the nine most frequent "
            "streams. Streams with a star are the fewest that cover 80 % of reads and writes."
        ),
        tables=("trace_streams",),
        status="trace_overview",
        when=("trace",),
        place=470,
    ),
    FigureKind(
        name="trace_sizes",
        title="Size mix",
        caption="Shares of reads and writes by length: of requests above, of bytes below.",
        tables=("trace_sizes",),
        status="trace_overview",
        when=("trace",),
        place=460,
    ),
)
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
    names = [f"{stream.stream}{' *' if stream.main else ''}" for stream in top.itertuples()]
    shares, palette = top["share_pct"].tolist(), _palette()[: len(top)]
    if len(rest):
        names.append(f"{len(rest):,} others")
        shares.append(float(rest["share_pct"].sum()))
        palette.append(_OTHERS)
    figure = style.new_figure(title, height_in=1.9 + 0.24 * len(names))
    _bars(figure.subplots(), names, shares, palette)
    count, main = len(streams), int(streams["main"].sum())
    covers = f"* the {main:,} most frequent" if main > 1 else "* one stream"
    style.note(
        figure,
        f"{covers} of {count:,} cover{'' if main > 1 else 's'} {streams[streams['main']]['share_pct'].sum():.0f} % of "
        "reads and writes; SEQ: begins where one of the 32 previous requests of the same kind ended",
    )
    return figure


def _palette() -> list[Any]:
    """Return nine colours without grey, which all other streams have."""
    return [colour for number, colour in enumerate(style.colours(10)) if number != 7]


def _bars(axes: Axes, names: list[str], shares: list[float], palette: list[Any]) -> None:
    places = np.arange(len(names))
    axes.barh(places, shares, color=palette, height=0.72, gid="shares")
    for place, share in zip(places, shares, strict=True):
        axes.annotate(f" {share:.1f}", (share, place), va="center", fontsize=style.SMALL_PT)
    axes.set_yticks(places, names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlim(0, max(shares) * 1.12)
    axes.set_xlabel("Share of reads and writes (%)")
    axes.grid(visible=False, axis="y")


_MOST_BARS = 12
_DIRECTIONS = ("read", "write")
_HATCHES = {"read": "", "write": "///"}


@style.styled
def trace_sizes(sizes: pd.DataFrame) -> Figure:
    """Draw shares of reads and writes by length, of requests and of bytes, from table `trace_sizes`.

    More than 12 lengths are grouped in classes that end at powers of two. Raises ValueError for an unsuitable table.
    """
    selection.require(sizes, "trace_sizes")
    title = "Size mix"
    chosen = sizes[sizes["operation"].isin(_DIRECTIONS) & (sizes["length_bytes"] > 0)]
    if chosen.empty:
        return common.nothing(title, "The trace has no reads or writes of data.")
    classes, exact = _classes(chosen["length_bytes"].to_numpy(np.int64))
    chosen = chosen.assign(upto=classes, bytes=chosen["requests"] * chosen["length_bytes"].astype(float))
    names = np.unique(classes)
    figure = style.new_figure(title, height_in=4.8)
    panels = figure.subplots(2, 1, sharex=True)
    for axes, column, what in zip(panels, ("requests", "bytes"), ("requests", "bytes"), strict=True):
        table = chosen.pivot_table(index="upto", columns="operation", values=column, aggfunc="sum", fill_value=0)
        _panel(axes, table.reindex(names), what)
    panels[1].set_xticks(range(len(names)), [format_size(int(name)) for name in names])
    if len(names) > 8:
        panels[1].tick_params(axis="x", labelrotation=40)
    panels[1].set_xlabel("Length of a request" if exact else "Length of a request, up to")
    ax.legend(figure, panels[0])
    return figure


def _classes(lengths: np.ndarray) -> tuple[np.ndarray, bool]:
    """Return the class of each length, named by its largest, and whether each length has its own class."""
    if np.unique(lengths).size <= _MOST_BARS:
        return lengths, True
    return 2 ** np.ceil(np.log2(lengths)).astype(np.int64), False


def _panel(axes: Axes, table: pd.DataFrame, what: str) -> None:
    total, places = float(table.to_numpy().sum()), np.arange(len(table))
    for shift, direction in zip((-0.2, 0.2), _DIRECTIONS, strict=True):
        share = 100 * table[direction] / total if direction in table else pd.Series(0.0, table.index)
        axes.bar(
            places + shift,
            share,
            width=0.4,
            color=common.DIRECTIONS[direction],
            hatch=_HATCHES[direction],
            edgecolor="white",
            linewidth=0.5,
            label=f"{direction}s" if share.sum() else f"{direction}s: none",
            gid=f"{direction} {what}",
        )
    axes.set_ylabel(f"Share of {what} (%)")
    axes.grid(visible=False, axis="x")
    room = max(0.6, 2.0 - len(table) / 2)  # a single bar does not fill the page
    axes.set_xlim(-room, len(table) - 1 + room)
