"""Rate within bursts, at first and after idle times: writes against their volume, loads with credits against time."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values.bursts import FULL, Burst, Fall, bursts, find_fall, share_back
from drivelab.core.units import format_amount, format_duration
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import elapsed, format_number, quantity, volume
from drivelab.figures.registry import FigureKind
from drivelab.tables.labels import named

FIGURES = (
    FigureKind(
        name="slc_cache",
        title="Write cache, at first and after idle times",
        caption=(
            "Rate of writes against their volume, a line for each burst: on the prepared drive, then after idle "
            "times. Dotted lines are where the rate falls, because the cache is full. The volume up to there is the "
            "cache that was free."
        ),
        tables=("cells",),
        when=("cache",),
        place=155,
    ),
    FigureKind(
        name="volume_burst",
        title="Bursts, at first and after idle times",
        caption=(
            "Rate against time, a line for each burst: at first, then after idle times. Dotted lines are where the "
            "rate falls, because the credits are used up. The area between both rates up to there is the credit."
        ),
        tables=("cells",),
        when=("credits",),
        place=156,
        options={"over_time": True},
    ),
)


_MIB = 1 << 20


@style.styled
def burst_rates(cells: pd.DataFrame, *, over_time: bool = False) -> Figure:
    """Draw the rate of each burst, and where it falls: bandwidth against volume, or IOPS against time.

    `cells` holds the soaks of one recording. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    found = bursts(named(cells))
    if not found:
        raise ValueError("table 'cells' has no load that is repeated after idle times")
    metric, io_bytes = ("iops", found[0].io_bytes) if over_time else ("bandwidth_mib_s", _MIB)
    scale = quantity(metric, float(cells[metric].max()))
    steps = [burst.seconds if over_time else burst.moved for burst in found]
    longest = max(float(each.sum()) for each in steps)
    along = elapsed(longest) if over_time else volume(longest)
    figure = style.new_figure(f"{_TITLES[over_time]}, {cells['workload'].iloc[0]}")
    axes = figure.subplots()
    fall = find_fall(found[0].moved, found[0].seconds)
    for place, (burst, step, colour) in enumerate(zip(found, steps, style.ordered_colours(len(found)), strict=True)):
        share = 1.0 if fall is None or not burst.wait else share_back(burst, fall)
        ends = np.r_[0.0, np.cumsum(step)] / along.divisor
        rates = burst.rates / io_bytes / scale.divisor
        name = _name(burst, fall, share, over_time)
        axes.plot(ends, np.r_[rates[:1], rates], drawstyle="steps-pre", color=colour,
                  linestyle=style.DASHES[place % 4], label=name, gid="line")  # fmt: skip
        if fall is not None and share > (0 if over_time else FULL):
            end = share * (fall.fast_s if over_time else fall.fast_bytes)
            axes.axvline(end / along.divisor, color=colour, linestyle=":", linewidth=1.6, label="_end of the burst",
                         gid="fall")  # fmt: skip
    axes.set_xlim(0, longest / along.divisor * 1.01)
    axes.set_xlabel(f"{_AXES[over_time]} ({along.unit})")
    ax.plain_numbers(axes, "x")
    ax.scale_y(axes, [float(value) / scale.divisor for value in cells[metric]], scale)
    ax.legend(figure, axes)
    return figure


_TITLES = {False: "Write rate against volume", True: "Rate of bursts"}
_AXES = {False: "Written in this burst", True: "Time since the start of this burst"}


def _name(burst: Burst, fall: Fall | None, share: float, over_time: bool) -> str:
    """Name a burst by the idle time before it, with the part of the cache or of the credits that was there."""
    name = f"after {burst.wait} idle" if burst.wait else "at first"
    if fall is None:
        return name
    if burst.wait and over_time:
        return f"{name}: {share:.0%} of the credits"
    if burst.wait:
        return f"{name}: " + ("cache full" if share <= FULL else f"{share:.0%} of the cache free")
    if over_time:
        rates = [format_number(rate * _MIB / burst.io_bytes) for rate in (fall.fast_mib_s, fall.slow_mib_s)]
        return f"{name}: {format_duration(fall.fast_s)} at {rates[0]}, then {rates[1]} IOPS"
    rates = [format_number(rate) for rate in (fall.fast_mib_s, fall.slow_mib_s)]
    return f"{name}: {format_amount(fall.fast_bytes)} at {rates[0]}, then {rates[1]} MiB/s"
