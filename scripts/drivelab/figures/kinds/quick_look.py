"""One picture of a quick look: every test as a bar with its interval, and the sustained write over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    Sustained,
    Value,
    sustained_of,
    values_of,
)
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import LATENCY as LATENCY_TEXTS
from drivelab.figures.base.quantities import elapsed, format_latency, format_number, quantity
from drivelab.figures.families import rows
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "quick_look", "Quick look",
        "The median of the rounds of each test, with the 95 % interval of their mean. For a latency, the marks are "
        "the 99 % and 99.9 % percentiles of all I/Os. Below, the sustained write over time, with a line where the "
        "rate falls. The drive was not preconditioned.",
        tables=("cells", "latency_bins"), when=("quick",), place=5,
    ),
)  # fmt: skip

_PANELS = {BANDWIDTH: "bandwidth_mib_s", IOPS: "iops", LATENCY: "p50_latency_us"}
_SUSTAINED_IN, _AXIS_IN = 1.7, 0.55
_BEYOND = 1.4
"""Where intervals are cut, relative to the longest bar."""
_TAIL = {"p99_us": "|", "p999_us": "x"}


@style.styled
def quick_look(cells: pd.DataFrame, latency_bins: pd.DataFrame) -> Figure:
    """Draw one or several places; raises ValueError for unsuitable tables."""
    selection.require(cells, "cells")
    selection.require(latency_bins, "latency_bins")
    places = {str(drive): part for drive, part in cells.groupby("drive", sort=False)}
    values = {drive: values_of(part, latency_bins[latency_bins["recording"].isin(part["recording"])])
              for drive, part in places.items()}  # fmt: skip
    written = {drive: sustained for drive, part in places.items() if (sustained := sustained_of(part)) is not None}
    colours = dict(zip(places, style.colours(len(places)), strict=True))
    tables = {metric: table for metric in _PANELS if len(table := _table(metric, values, colours))}
    if not tables:
        raise ValueError("table 'cells' has no test of the quick look")
    layout = {metric: rows.Places.of(table) for metric, table in tables.items()}
    heights = [_AXIS_IN + rows.LINE_IN * layout[metric].edges[-1] for metric in tables]
    heights += [_SUSTAINED_IN] if written else []
    figure = style.new_figure(f"Quick look, {' and '.join(places)}", height_in=0.4 + sum(heights))
    panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for axes, (metric, table) in zip(panels, tables.items(), strict=False):
        label = "Latency (µs, ms, s): dot 50 %, bar 99 %, cross 99.9 %, log scale"
        across = rows.Across(label, True, LATENCY_TEXTS) if metric == LATENCY else rows.Across(table.attrs["label"])
        rows.draw_panel(axes, table, layout[metric], across)
    if written:
        _sustained(panels[-1], written, colours)
    if len(places) > 1:
        handles = [Patch(color=colour, label=drive) for drive, colour in colours.items()]
        ax.legend(figure, panels[0], handles=handles)
    return figure


def _table(metric: str, values: Mapping[str, Any], colours: Mapping[str, Any]) -> pd.DataFrame:
    """Return the marks of a panel, the first test on top; latencies in µs, as they span decades from median to tail."""
    known = {(drive, value.shown): value for drive, found in values.items() for value in found
             if value.shown.metric == metric}  # fmt: skip
    largest = max((value.value for value in known.values()), default=0.0)
    scale = quantity(_PANELS[metric], 1.0 if metric == LATENCY else largest)
    marks = [
        {"row": test.words, "line": drive, "name": drive, "colour": colours[drive], **mark}
        for test in SHOWN for drive in values if (value := known.get((drive, test))) is not None
        for mark in (_points(value) if metric == LATENCY else _bar(value, scale.divisor, largest * _BEYOND))
    ]  # fmt: skip
    table = rows.complete(pd.DataFrame(marks)) if marks else pd.DataFrame()
    table.attrs["label"] = scale.label
    return table


def _bar(value: Value, divisor: float, most: float) -> Iterator[dict[str, Any]]:
    """Yield a rate with its interval, cut at `most`."""
    half = value.value * (value.half_width_pct or float("nan")) / 100
    ends = max(value.value - half, 0.0) / divisor, min(value.value + half, most) / divisor
    shown = value.value / divisor
    yield {"value": shown, "number": format_number(shown), "bar": True,
           "low": ends[0] if half == half else np.nan, "high": ends[1] if half == half else np.nan}  # fmt: skip


def _points(value: Value) -> Iterator[dict[str, Any]]:
    """Yield the median as a dot, and 99 % and 99.9 % as marks on a line from it."""
    tail = {marker: us for name, marker in _TAIL.items() if (us := getattr(value, name)) is not None}
    yield {"value": value.value, "number": format_latency(value.value), "low": value.value if tail else np.nan,
           "high": max(tail.values(), default=np.nan), "marker": "o"}  # fmt: skip
    for marker, us in tail.items():
        yield {"value": us, "number": "", "marker": marker, "gid": "percentile"}


def _sustained(axes: Axes, written: Mapping[str, Sustained], colours: Mapping[str, Any]) -> None:
    """Draw the rate of the sustained write over time, with a line where it falls."""
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
