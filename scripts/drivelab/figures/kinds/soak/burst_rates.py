"""Rate of writes within bursts against their volume, at first and after idle times."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from drivelab.analysis.values.bursts import FULL, Burst, Fall, bursts, find_fall, share_back
from drivelab.core.units import format_amount
from drivelab.figures.base import axes as ax
from drivelab.figures.base import selection, style
from drivelab.figures.base.quantities import format_number, quantity, volume
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
)


_MIB = 1 << 20


@style.styled
def burst_rates(cells: pd.DataFrame) -> Figure:
    """Draw the bandwidth of each burst against its volume, and where it falls.

    `cells` holds the soaks of one recording. Raises ValueError for unsuitable tables.
    """
    selection.require_one(cells, "recording", "cells")
    found = bursts(named(cells))
    if not found:
        raise ValueError("table 'cells' has no load that is repeated after idle times")
    scale = quantity("bandwidth_mib_s", float(cells["bandwidth_mib_s"].max()))
    longest = max(float(burst.moved.sum()) for burst in found)
    along = volume(longest)
    figure = style.new_figure(f"Write rate against volume, {cells['workload'].iloc[0]}")
    axes = figure.subplots()
    fall = find_fall(found[0].moved, found[0].seconds)
    for place, (burst, colour) in enumerate(zip(found, style.ordered_colours(len(found)), strict=True)):
        share = 1.0 if fall is None or not burst.wait else share_back(burst, fall)
        ends = np.r_[0.0, np.cumsum(burst.moved)] / along.divisor
        rates = burst.rates / _MIB / scale.divisor
        axes.plot(ends, np.r_[rates[:1], rates], drawstyle="steps-pre", color=colour,
                  linestyle=style.DASHES[place % 4], label=_name(burst, fall, share), gid="line")  # fmt: skip
        if fall is not None and share > FULL:
            axes.axvline(share * fall.fast_bytes / along.divisor, color=colour, linestyle=":", linewidth=1.6,
                         label="_end of the burst", gid="fall")  # fmt: skip
    axes.set_xlim(0, longest / along.divisor * 1.01)
    axes.set_xlabel(f"Written in this burst ({along.unit})")
    ax.plain_numbers(axes, "x")
    ax.scale_y(axes, [float(value) / scale.divisor for value in cells["bandwidth_mib_s"]], scale)
    ax.legend(figure, axes)
    return figure


def _name(burst: Burst, fall: Fall | None, share: float) -> str:
    """Name a burst by the idle time before it, with the part of the cache that was free."""
    name = f"after {burst.wait} idle" if burst.wait else "at first"
    if fall is None:
        return name
    if burst.wait:
        return f"{name}: " + ("cache full" if share <= FULL else f"{share:.0%} of the cache free")
    rates = [format_number(rate) for rate in (fall.fast_mib_s, fall.slow_mib_s)]
    return f"{name}: {format_amount(fall.fast_bytes)} at {rates[0]}, then {rates[1]} MiB/s"
