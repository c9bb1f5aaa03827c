"""Axes as all figures want them: scale, ticks, and a legend that covers no data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import floor, log10

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from drivelab.figures.base import style
from drivelab.figures.base.layout import BELOW, BESIDE
from drivelab.figures.base.quantities import Quantity, format_number, with_minus

_ROW_CHARACTERS = 86
"""Of a legend below the axes."""
_HANDLE_CHARACTERS = 7
"""Width of an entry's handle and of the space around it."""
_NEAR_A_TICK, _NEAR_A_DECADE = 1.5, 3.0
"""How many times a tick a value may be to be read by it, where there are several ticks to a decade, and where not."""
_LOG_FROM = 30.0  # a linear axis shows nothing of a line thirty times below the highest


def is_wide(values: Sequence[float]) -> bool:
    """Whether values spread so far that only a logarithmic axis shows them all; never with a zero among them."""
    return len(values) > 0 and min(values) > 0 and max(values) / min(values) >= _LOG_FROM


def scale_y(axes: Axes, values: Sequence[float], quantity: Quantity, *, log: bool = False) -> None:
    """Label and limit the y axis for `values` (in display units): from 0, or logarithmic when asked.

    Raises ValueError when there is no value to show.
    """
    if not values:
        raise ValueError(f"there is no value of '{quantity.name}' to show")
    axes.set_ylabel(quantity.label + (", log scale" if log else ""))
    if log:
        log_axis(axes, "y", min(values), max(values))
    else:
        axes.set_ylim(0, max(values) * 1.08 or 1.0)
        plain_numbers(axes, "y")


def plain_numbers(axes: Axes, which: str) -> None:
    """Ticks as `20k` instead of 20000."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: with_minus(format_number(value))))


def log_axis(
    axes: Axes, which: str, smallest: float, largest: float, formatter: Callable[[float], str] = format_number
) -> None:
    """A decimal logarithmic axis with as many ticks to a decade as there is room for."""
    axis = axes.yaxis if which == "y" else axes.xaxis
    low, high = smallest / 1.25, largest * 1.25
    (axes.set_yscale if which == "y" else axes.set_xscale)("log")
    decades = log10(high / low)
    ticks = (1, 1.5, 2, 3, 4, 5, 7) if decades <= 1 else (1, 2, 5) if decades <= 2.9 else (1,)
    high = max(high, _tick_to_read(largest, high, ticks))
    (axes.set_ylim if which == "y" else axes.set_xlim)(low, high)
    axis.set_major_locator(LogLocator(subs=ticks, numticks=30))
    axis.set_minor_locator(NullLocator())  # they would be made one by one, and nothing of them is shown
    axis.set_major_formatter(FuncFormatter(lambda value, _: formatter(value)))


def _tick_to_read(largest: float, high: float, ticks: Sequence[float]) -> float:
    """A tick by which `largest` can be read: one up to `high` that is near to it or above it, else the next above."""
    decade = 10.0 ** floor(log10(largest))
    places = [step * decade * factor for factor in (1, 10) for step in ticks]
    near = largest / (_NEAR_A_TICK if len(ticks) > 1 else _NEAR_A_DECADE)
    there = [place for place in places if near <= place <= high]
    return there[-1] if there else next(place for place in places if place >= largest)


def round_axis(axes: Axes, first: int, last: int) -> None:
    """An x axis of whole rounds."""
    axes.set_xlim(first - 0.6, last + 0.6)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=13, min_n_ticks=1))
    axes.set_xlabel("Round (number)")


def legend(figure: Figure, axes: Axes, title: str | None = None, handles: Sequence[Artist] | None = None) -> None:
    """Explain the lines (or `handles`) outside of the axes: on the right under a `title` while the names are short,
    else below, where the figure grows by what the names need."""
    handles = axes.get_legend_handles_labels()[0] if handles is None else handles
    labels = [str(handle.get_label()) for handle in handles]
    widest = max(len(text) for text in labels)
    if title is not None and widest <= 16 and len(labels) >= 3:
        figure.legend(handles, labels, title=title, loc="center right").set_gid(BESIDE)
        return
    fits_one_row = sum(len(text) + _HANDLE_CHARACTERS for text in labels) <= _ROW_CHARACTERS
    columns = (
        len(labels) if fits_one_row else max(1, min(len(labels), _ROW_CHARACTERS // (widest + _HANDLE_CHARACTERS)))
    )
    style.grow(figure, 0.18 * (-(-len(labels) // columns) - 1))
    figure.legend(
        handles,
        labels,
        loc="lower center",
        ncols=columns,
        columnspacing=1.6,
        handlelength=1.6,
        handletextpad=0.6,
        borderpad=0.2,
    ).set_gid(BELOW)
