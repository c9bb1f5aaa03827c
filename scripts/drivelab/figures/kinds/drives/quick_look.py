"""One picture of a quick look: every test as a bar with its interval, and the sustained write over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drivelab.analysis.values.quick_look import (
    BANDWIDTH,
    IOPS,
    LATENCY,
    SHOWN,
    Shown,
    Sustained,
    Value,
    sustained_of,
    values_of,
)
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import Quantity, elapsed, format_number, quantity
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        name="quick_look",
        title="Quick look",
        caption=(
            "The median of the rounds of each test, with the 95 % interval of their mean. For a latency, the marks are "
            "the 99 % and 99.9 % percentiles of all I/Os. Below, the sustained write over time, with a line where the "
            "rate falls. The drive was not preconditioned."
        ),
        tables=("cells", "latency_bins"),
        when=("quick",),
        place=5,
    ),
)

_PANELS = {BANDWIDTH: "bandwidth_mib_s", IOPS: "iops", LATENCY: "p50_latency_us"}
_ROW_IN, _PANEL_IN, _SUSTAINED_IN = 0.27, 0.55, 1.7
_BARS = 0.78
"""Height of the bars of one test, as a share of its row."""
_BEYOND, _ROOM = 1.4, 1.16
"""Where intervals are cut, relative to the longest bar; and the room for numbers behind them."""


@style.styled
def quick_look(cells: pd.DataFrame, latency_bins: pd.DataFrame) -> Figure:
    """Draw one or several places; raises ValueError for unsuitable tables."""
    selection.require(cells, "cells")
    selection.require(latency_bins, "latency_bins")
    places = {
        str(drive): _Look(
            values_of(rows, latency_bins[latency_bins["recording"].isin(rows["recording"])]), sustained_of(rows)
        )
        for drive, rows in cells.groupby("drive", sort=False)
    }
    shown = [test for test in SHOWN if any(test in look.by_test for look in places.values())]
    metrics = [metric for metric in _PANELS if any(test.metric == metric for test in shown)]
    if not metrics:
        raise ValueError("table 'cells' has no test of the quick look")
    heights = [_PANEL_IN + _row_in(len(places)) * sum(t.metric == metric for t in shown) for metric in metrics]
    is_sustained = any(look.sustained is not None for look in places.values())
    heights += [_SUSTAINED_IN] if is_sustained else []
    figure = style.new_figure(f"Quick look, {' and '.join(places)}", height_in=0.4 + sum(heights))
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    colours = dict(zip(places, style.colours(len(places)), strict=True))
    for axes, metric in zip(panels, metrics, strict=False):
        _bars(axes, metric, [test for test in shown if test.metric == metric], places, colours)
    if is_sustained:
        _sustained(panels[-1], places, colours)
    if len(places) > 1:
        ax.legend(figure, panels[0], handles=_handles(colours))
    return figure


def _handles(colours: Mapping[str, Any]) -> list[Patch]:
    return [Patch(color=colour, label=drive) for drive, colour in colours.items()]


@dataclass(frozen=True)
class _Look:
    """The values of one place."""

    values: Sequence[Value]
    sustained: Sustained | None

    @property
    def by_test(self) -> dict[Shown, Value]:
        return {value.shown: value for value in self.values}


def _row_in(places: int) -> float:
    return _ROW_IN * (1 + 0.6 * (places - 1))


def _bars(
    axes: Axes, metric: str, tests: Sequence[Shown], places: Mapping[str, _Look], colours: Mapping[str, Any]
) -> None:
    """Draw a panel, the first test on top; several places side by side in each row.

    Rates are bars from zero. Latencies span decades from median to tail, so they are points on a logarithmic axis.
    """
    known = [value for look in places.values() for value in look.values if value.shown in tests]
    largest = max(value.value for value in known)
    if metric == LATENCY:
        ends = [us for value in known for us in (value.value, value.p99_us, value.p999_us) if us is not None]
        scale = quantity(_PANELS[metric], min(ends))
    else:
        scale = quantity(_PANELS[metric], largest)
    height = _BARS / len(places)
    for number, (drive, look) in enumerate(places.items()):
        for row, test in enumerate(tests):
            if (value := look.by_test.get(test)) is not None:
                at = row + (number - (len(places) - 1) / 2) * height
                draw = _points if metric == LATENCY else _bar
                draw(axes, at, height * 0.9, value, scale, colours[drive], largest * _BEYOND)
    axes.set_yticks(range(len(tests)), [test.words for test in tests])
    axes.set_ylim(len(tests) - 0.45, -0.55)
    axes.grid(visible=False, axis="y")
    if metric == LATENCY:
        ax.log_axis(axes, "x", min(ends) / scale.divisor / 4, max(ends) / scale.divisor * 1.3)
        axes.set_xlabel(f"Latency ({scale.unit}): dot 50 %, bar 99 %, cross 99.9 %, log scale")
    else:
        ends = [min(value.value * (1 + (value.half_width_pct or 0) / 100), largest * _BEYOND) for value in known]
        axes.set_xlim(0, _ROOM * max(ends) / scale.divisor)
        axes.set_xlabel(scale.label)
        ax.plain_numbers(axes, "x")


def _bar(axes: Axes, at: float, height: float, value: Value, scale: Quantity, colour: Any, most: float) -> None:
    """Draw a rate with its interval, cut at `most`, and write the value behind both."""
    shown = value.value / scale.divisor
    axes.barh([at], [shown], height, color=colour, gid="value")
    end = shown
    if value.half_width_pct is not None:
        half = shown * value.half_width_pct / 100
        low, high = min(half, shown), min(half, most / scale.divisor - shown)
        axes.errorbar([shown], [at], xerr=[[low], [high]], color=style.INK, capsize=2, linewidth=1, gid="interval")
        end = shown + high
    _number(axes, end, at, shown)


def _points(axes: Axes, at: float, height: float, value: Value, scale: Quantity, colour: Any, most: float) -> None:
    """Draw the median as a dot, 99 % and 99.9 % as marks on a line, and write the median before the dot."""
    points = [us / scale.divisor for us in (value.value, value.p99_us, value.p999_us) if us is not None]
    axes.plot(points, [at] * len(points), color=colour, linewidth=1, gid="tail")
    axes.plot(points[:1], [at], "o", color=colour, markersize=7, gid="value")
    for point, marker in zip(points[1:], ("|", "x"), strict=False):
        axes.plot([point], [at], marker, color=colour, markersize=7, markeredgewidth=1.5, gid="percentile")
    _number(axes, points[0], at, points[0], before=True)


def _number(axes: Axes, end: float, at: float, shown: float, *, before: bool = False) -> None:
    axes.annotate(format_number(shown), (end, at), (-6 if before else 6, 0), textcoords="offset points",
                  ha="right" if before else "left", va="center", fontsize=style.SMALL_PT, gid="number")  # fmt: skip


def _sustained(axes: Axes, places: Mapping[str, _Look], colours: Mapping[str, Any]) -> None:
    """Draw the rate of the sustained write over time, with a line where it falls."""
    written = {drive: look.sustained for drive, look in places.items() if look.sustained is not None}
    time = elapsed(max(sustained.seconds[-1] for sustained in written.values()))
    scale = quantity("bandwidth_mib_s", max(max(sustained.rates_mib_s) for sustained in written.values()))
    for drive, sustained in written.items():
        seconds = [second / time.divisor for second in sustained.seconds]
        axes.plot(seconds, [rate / scale.divisor for rate in sustained.rates_mib_s], color=colours[drive], label=drive)
        if (cliff_s := _cliff_s(sustained)) is not None:
            axes.axvline(cliff_s / time.divisor, color=colours[drive], linestyle=":", gid="cliff")
            axes.annotate("cliff", (cliff_s / time.divisor, 0.97), (3, 0), xycoords=("data", "axes fraction"),
                          textcoords="offset points", va="top", fontsize=style.SMALL_PT)  # fmt: skip
    axes.set_title("Sustained write", loc="left", fontsize=style.SMALL_PT)
    axes.set_xlim(0, None)
    axes.set_xlabel(time.label)
    ax.scale_y(axes, [rate / scale.divisor for look in written.values() for rate in look.rates_mib_s], scale)


def _cliff_s(sustained: Sustained) -> float | None:
    """Return the time of the cliff in seconds, or None."""
    if sustained.cliff_bytes is None:
        return None
    ends_s = np.asarray(sustained.seconds)
    written = np.cumsum(np.asarray(sustained.rates_mib_s) * np.diff(ends_s, prepend=0.0)) * (1 << 20)
    return float(np.interp(sustained.cliff_bytes, [0.0, *written], [0.0, *ends_s]))
