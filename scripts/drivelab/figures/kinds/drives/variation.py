"""What makes the values of a measurement vary: standard deviations of rounds, recordings, specimens and hosts."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drivelab.analysis.deltas.variation import SOURCES
from drivelab.figures.base import axes as ax
from drivelab.figures.base import style
from drivelab.figures.base.quantities import short_name
from drivelab.figures.base.words import say, tell
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="variation",
        title="What makes the values vary",
        caption=(
            "Standard deviation of one value, by source: the rounds of a recording, the recordings of a drive, the "
            "specimens of a model, and hosts; each beyond what the sources before explain. Whiskers are 95 % "
            "confidence intervals, cut at the edge. More recordings reduce only what recordings cause."
        ),
        tables=("variation",),
        status="summary",
        when=("drives_variation",),
        place=380,
    ),
)

_LOOKS = dict(zip(SOURCES, (("#7a7a7a", "o"), ("#0072b2", "s"), ("#d55e00", "D"), ("#009e73", "^")), strict=True))
"""Colour and marker of each source."""
_LINE_IN = 0.24
_ROOM = 1.25
_MOST_WIDE = 4.0
"""Whiskers reach at most this multiple of the largest standard deviation."""


@style.styled
def variation(variation: pd.DataFrame) -> Figure:
    """Draw the rows of table `variation` of a measurement, of its first metric, each with its interval.

    Raises ValueError for missing columns and unknown sources.
    """
    if variation.empty:
        figure = style.new_figure("Standard deviation of the values")
        style.note(figure, "no two undisturbed values to compare")
        return figure
    if unknown := set(variation["source"]) - set(_LOOKS):
        raise ValueError(f"table 'variation' has the unknown source(s) {', '.join(sorted(unknown))}")
    metric = str(variation["metric"].iloc[0])
    shown = variation[variation["metric"] == metric].reset_index(drop=True)
    figure = style.new_figure(
        f"Standard deviation of {short_name(metric)}", height_in=max(2.4, 1.6 + _LINE_IN * len(shown))
    )
    axes = figure.subplots()
    widest = float(min(shown["high_pct"].max(), _MOST_WIDE * shown["sd_pct"].max())) or 1.0
    end = _ROOM * widest
    axes.set_xlim(-0.02 * end, end)
    for source, (colour, marker) in _LOOKS.items():
        rows = shown[shown["source"] == source]
        if rows.empty:
            continue
        ax.whiskers(axes, rows["low_pct"], rows["high_pct"].clip(upper=end), rows.index, color=colour, linewidth=1.8,
                    label=f"{source}, interval")  # fmt: skip
        (dots,) = axes.plot(
            rows["sd_pct"], rows.index, linestyle="none", marker=marker, color=colour, gid=source, label=source
        )
        ends = rows[["low_pct", "high_pct"]].to_numpy(dtype=float)
        say(dots, [f"Interval: {low:.3g} to {high:.3g} %" for low, high in ends])
    for place, sd_pct in shown["sd_pct"].items():
        axes.annotate(f"{sd_pct:.2g} %", (1.0, place), (6, 0), xycoords=("axes fraction", "data"), va="center",
                      textcoords="offset points", fontsize=style.SMALL_PT, annotation_clip=False)  # fmt: skip
    names = list(shown["subject"])
    axes.set_yticks(range(len(names)), names)
    tell(axes.yaxis, lambda place: names[min(max(round(place), 0), len(names) - 1)])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_xlabel("Standard deviation (%)")
    axes.grid(visible=False, axis="y")
    handles = [
        Line2D([], [], color=colour, marker=marker, linestyle="none", label=SOURCES[source])
        for source, (colour, marker) in _LOOKS.items()
        if (shown["source"] == source).any()
    ]
    ax.legend(figure, axes, handles=handles)
    return figure
