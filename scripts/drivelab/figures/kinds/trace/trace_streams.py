"""I/O stream map of a trace after SNIA RWSW: the nine most frequent streams, in total and over time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
            "writes of one size, random or sequential. Shown are the shares and rates of the nine most "
            "frequent streams. Streams with a star are the fewest that cover 80 % of reads and writes."
        ),
        tables=("trace_streams", "trace_streams_over_time", "trace_over_time"),
        status="trace_overview",
        when=("trace",),
        place=470,
    ),
)

_SHOWN = 9
_OTHERS = "#b5b5b5"


@style.styled
def trace_streams(streams: pd.DataFrame, streams_over_time: pd.DataFrame, over_time: pd.DataFrame) -> Figure:
    """Draw the shares of the nine most frequent streams and all others, and their rates over time.

    From the tables `trace_streams`, `trace_streams_over_time` and `trace_over_time`. Streams with a star are the
    fewest that cover 80 % of the reads and writes. Raises ValueError for unsuitable tables.
    """
    selection.require(over_time, "trace_over_time")
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
    figure = style.new_figure(title, height_in=1.9 + 0.24 * len(names) + 2.2)
    bars, rates = figure.subplots(2, 1, height_ratios=(0.5 + 0.24 * len(names), 2.2))
    _bars(bars, names, shares, palette)
    _rates(rates, streams_over_time, over_time, dict(zip(names, palette, strict=True)))
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


def _rates(axes: Axes, streams: pd.DataFrame, over_time: pd.DataFrame, looks: dict[str, Any]) -> None:
    if over_time["requests_per_s"].isna().all():
        axes.set_axis_off()
        axes.text(0.5, 0.5, "The trace has no duration.", transform=axes.transAxes, ha="center", color=style.MUTED)
        return
    edges = common.edges_s(over_time)
    divisor = common.time_axis(axes, float(edges[-1]))
    width = np.diff(edges)
    place = np.searchsorted(edges, streams["begin_s"].to_numpy(float) + 1e-12, side="right") - 1
    lower = np.zeros(len(width))
    for number, (name, colour) in enumerate(looks.items()):
        mine = (streams["rank"] == number + 1).to_numpy()
        requests = np.bincount(place[mine], streams["requests"][mine], len(width))
        upper = lower + requests / width
        axes.stairs(upper, edges / divisor, baseline=lower, fill=True, color=colour, linewidth=0, label=name,
                    gid=f"rate {number + 1}")  # fmt: skip
        lower = upper
    axes.set_ylim(0, float(lower.max()) * 1.05 or 1.0)
    axes.set_ylabel("Requests/s, stacked")
    ax.plain_numbers(axes, "y")
