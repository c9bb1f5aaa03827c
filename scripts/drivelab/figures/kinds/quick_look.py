"""One picture of a quick look: every test as a bar or dot with its interval."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from drivelab.analysis.values.quick_look import BANDWIDTH, IOPS, LATENCY, SHOWN, Value, values_of
from drivelab.figures.base import overlay, selection
from drivelab.figures.base.quantities import LATENCY as LATENCY_TEXTS
from drivelab.figures.base.quantities import format_latency, format_number, quantity
from drivelab.figures.families.rows import Across, Rows
from drivelab.figures.registry import FigureKind

FIGURES = (
    FigureKind(
        "quick_look", "Quick look",
        "The median of the rounds of each test, with the 95 % interval of their mean. For a latency, the marks are "
        "the 99 % and 99.9 % percentiles of all I/Os. The drive was not preconditioned.",
        tables=("cells", "latency_bins"), when=("quick",), place=5,
    ),
)  # fmt: skip

_METRICS = {BANDWIDTH: "bandwidth_mib_s", IOPS: "iops", LATENCY: "p50_latency_us"}
_BEYOND = 1.4
"""Where intervals are cut, relative to the longest bar."""
_TIMES = Across("Latency (µs, ms, s): dot 50 %, bar 99 %, cross 99.9 %", True, LATENCY_TEXTS)


def quick_look(cells: pd.DataFrame, latency_bins: pd.DataFrame) -> Figure:
    """Draw the tests of one or several places: bandwidths, rates and latencies one above the other."""
    selection.require(cells, "cells")
    selection.require(latency_bins, "latency_bins")
    looks = overlay.looks(cells["drive"])
    known = [
        (drive, value)
        for drive, part in cells.groupby("drive", sort=False)
        for value in values_of(part, latency_bins[latency_bins["recording"].isin(part["recording"])])
    ]
    marks: list[dict[str, Any]] = []
    across = {}
    for metric in (BANDWIDTH, IOPS, LATENCY):
        shown = [(test, drive, value) for test in SHOWN if test.metric == metric
                 for drive, value in known if value.shown == test]  # fmt: skip
        if not shown:
            continue
        largest = max(value.value for _, _, value in shown)
        scale = quantity(_METRICS[metric], largest)
        across[metric] = _TIMES if metric == LATENCY else Across(scale.label)
        for test, drive, value in shown:
            row = {"row": test.words, "panel": metric, "line": drive, "name": drive, "colour": looks[drive].colour}
            drawn = _points(value) if metric == LATENCY else _bar(value, scale.divisor, largest * _BEYOND)
            marks += [{**row, **mark} for mark in drawn]
    if not marks:
        raise ValueError("table 'cells' has no test of the quick look")
    handles = [Patch(color=look.colour, label=drive) for drive, look in looks.items()] if len(looks) > 1 else []
    return Rows(f"Quick look, {' and '.join(looks)}", across, stacked=True).draw(pd.DataFrame(marks), handles)


def _bar(value: Value, divisor: float, most: float) -> Iterator[dict[str, Any]]:
    """Yield a rate with its interval, cut at `most`."""
    half, shown = value.value * (value.half_width_pct or float("nan")) / 100, value.value / divisor
    low, high = np.clip([value.value - half, value.value + half], 0.0, most) / divisor
    yield {"value": shown, "number": format_number(shown), "bar": True, "low": low, "high": high}


def _points(value: Value) -> Iterator[dict[str, Any]]:
    """Yield the median as a dot, and 99 % and 99.9 % as marks on a line from it."""
    tail = {marker: us for marker, us in (("|", value.p99_us), ("x", value.p999_us)) if us is not None}
    yield {"value": value.value, "number": format_latency(value.value), "low": value.value if tail else np.nan,
           "high": max(tail.values(), default=np.nan)}  # fmt: skip
    for marker, us in tail.items():
        yield {"value": us, "marker": marker, "gid": "percentile"}
