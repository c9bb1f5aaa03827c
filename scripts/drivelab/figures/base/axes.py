"""Axes of all figures: scale, ticks, and a legend outside of the data."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from drivelab.figures.base import style, words
from drivelab.figures.base.quantities import NUMBER, Quantity, Texts

_ROW_CHARACTERS = 86
"""Length of a row of a legend below the axes of a figure of the usual width."""
_HANDLE_CHARACTERS = 7
"""Width of an entry's handle and of the space around it."""
_NEAR_A_TICK, _NEAR_A_DECADE = 1.5, 3.0
"""Largest ratio of a readable value to its tick, with several ticks per decade and with one."""
_LOG_FROM = 30.0  # a linear axis hides a line thirty times below the highest


def is_wide(values: Any) -> bool:
    """Return whether only a logarithmic axis can show all values; False if one is zero."""
    known = np.asarray(values, dtype=float)
    known = known[~np.isnan(known)]
    return bool(known.size and known.min() > 0 and known.max() / known.min() >= _LOG_FROM)


def scale_y(axes: Axes, values: Sequence[float], quantity: Quantity, *, log: bool = False) -> None:
    """Label and limit the y axis for `values` (in display units): from 0, or logarithmic with `log`.

    Raises ValueError if `values` is empty.
    """
    if not values:
        raise ValueError(f"there is no value of '{quantity.name}' to show")
    axes.set_ylabel(quantity.label + (", log scale" if log else ""))
    if log:
        log_axis(axes, "y", min(values), max(values))
    else:
        axes.set_ylim(0, max(values) * 1.08 or 1.0)
        write(axes.yaxis, NUMBER)


def write(axis: Axis, texts: Texts) -> None:
    """Set how an axis writes its values, at the ticks and to a reader who points at a mark."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: texts.short(value)))
    words.tell(axis, texts)


def log_axis(axes: Axes, which: str, smallest: float, largest: float, texts: Texts = NUMBER) -> None:
    """Set a decimal logarithmic axis with as many ticks per decade as fit."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high = smallest / 1.25, largest * 1.25
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    decades = log10(high / low)
    steps = (1, 1.5, 2, 3, 4, 5, 7) if decades <= 1 else (1, 2, 5) if decades <= 2.9 else (1,)
    high = max(high, _tick_to_read(largest, high, steps))
    (axes.set_ylim if which == "y" else axes.set_xlim)(low, high)
    axis.set_major_locator(LogLocator(subs=steps, numticks=30))
    axis.set_minor_locator(NullLocator())  # slow to make, and not shown
    write(axis, texts)


def few_ticks(axis: Axis) -> None:
    """Set few ticks on a logarithmic axis of a narrow panel."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1,) if high > _LOG_FROM * low else (1, 3), numticks=8))


def _tick_to_read(largest: float, high: float, steps: Sequence[float]) -> float:
    """Return a tick that makes `largest` readable: one near it and up to `high`, else the next above it."""
    decade = 10.0 ** floor(log10(largest))
    places = [step * decade * factor for factor in (1, 10) for step in steps]
    near = largest / (_NEAR_A_TICK if len(steps) > 1 else _NEAR_A_DECADE)
    there = [place for place in places if near <= place <= high]
    return there[-1] if there else next(place for place in places if place >= largest)


def ticks(axis: Axis, places: Sequence[float], texts: Texts) -> None:
    """Set ticks at `places` only, and their texts."""
    axis.set_major_locator(FixedLocator(places))
    axis.set_minor_locator(NullLocator())
    write(axis, texts)


def whiskers(axes: Axes, low: Any, high: Any, at: Any, *, upright: bool = False, **look: Any) -> None:
    """Draw a whisker from `low` to `high` at each place of `at`, across or upright; together they are one line."""
    gap = np.full(len(at), np.nan)
    along, places = np.column_stack([low, high, gap]).ravel(), np.column_stack([at, at, gap]).ravel()
    axes.plot(*((places, along) if upright else (along, places)), **{"gid": "interval", **look})


def nines_axis(axes: Axes, smallest: float, label: str) -> None:
    """Set an inverted logarithmic y axis of the share above, from 1 to `smallest`, with the tail at the top."""
    axes.set_yscale("log")
    axes.set_ylim(1.0, smallest)
    nines = [10.0**-power for power in range(12) if 10.0**-power >= smallest]
    ticks(axes.yaxis, nines, Texts(_percentile, lambda share: f"{100 * (1 - share):.7g} %"))
    axes.set_ylabel(label)


def _percentile(share: float) -> str:
    """Return the percentile of a share above: 0.001 is `99.9`."""
    digits = len(f"{1 / share:.0f}") - 1
    return f"{100 * (1 - share):.{max(0, digits - 2)}f}"


def round_axis(axes: Axes, first: int, last: int) -> None:
    """Set an x axis of whole rounds."""
    axes.set_xlim(first - 0.6, last + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=13, min_n_ticks=1))
    axes.set_xlabel("Round (number)")


def legend(figure: Figure, axes: Axes, title: str | None = None, handles: Sequence[Artist] | None = None) -> None:
    """Add a legend of the artists of `axes` (or `handles`), each label once.

    It is right of the axes under `title` if names are short, else below the axes, and the figure grows by its rows.
    """
    handles = axes.get_legend_handles_labels()[0] if handles is None else handles
    of_labels = {str(handle.get_label()): handle for handle in reversed(handles)}
    labels = list(dict.fromkeys(str(handle.get_label()) for handle in handles))
    shown = [of_labels[label] for label in labels]
    widest = max(len(text) for text in labels)
    if title is not None and widest <= 16 and len(labels) >= 3:
        figure.legend(shown, labels, title=title, loc="outside right center")
        return
    row = int(_ROW_CHARACTERS * style.page.get().width_in / style.WIDTH_IN)
    fits_one_row = sum(len(text) + _HANDLE_CHARACTERS for text in labels) <= row
    columns = len(labels) if fits_one_row else max(1, min(len(labels), row // (widest + _HANDLE_CHARACTERS)))
    style.grow(figure, 0.18 * (-(-len(labels) // columns) - 1))
    figure.legend(shown, labels, loc="outside lower center", ncols=columns, columnspacing=1.6, handlelength=1.6,
                  handletextpad=0.6, borderpad=0.2)  # fmt: skip
