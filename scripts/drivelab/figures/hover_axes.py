"""The axes of a drawn figure as Plotly has them: place, scale, range, ticks, and how they word a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import NullFormatter
from matplotlib.transforms import BboxBase

from drivelab.figures.hover_numbers import DIGITS, Floats, floats, number, placed
from drivelab.figures.hover_style import escaped
from drivelab.figures.hover_words import Words, is_number, of_labels, parts

_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_WORDS = "words_of_a_value"
_TICK_ERROR = 0.01  # labels are rounded
_GRID = "#dcdcdc"
_LINE = "#9a9a9a"


@dataclass(frozen=True)
class Side:
    """One axis of a panel."""

    axis: Axis = field(repr=False)
    key: str
    """`x`, `x2` … or `y`, `y2` …, as traces refer to it."""
    label: str
    name: str
    """What is shown, without the unit."""
    unit: str
    scale: str
    """`linear`, `log`, or another of matplotlib's: then the values are transformed before Plotly gets them."""
    ticks: tuple[float, ...]
    tick_labels: tuple[str, ...]
    counts: bool = False
    """Whether it is a number of things: on a logarithmic axis, which has no place for none, none lies below one."""

    @property
    def layout_key(self) -> str:
        """Key of the axis in a Plotly layout."""
        return f"{self.key[0]}axis{self.key[1:]}"

    @property
    def is_native(self) -> bool:
        """Whether Plotly has this scale."""
        return self.scale in ("linear", "log")

    @property
    def is_category(self) -> bool:
        """Whether the ticks name things instead of values."""
        whole = self.scale == "linear" and bool(self.ticks) and all(tick == round(tick) for tick in self.ticks)
        return whole and not self._tells_numbers and self._of_labels is None

    @property
    def _tells_numbers(self) -> bool:
        return _are_numbers(self.ticks, self.tick_labels)

    @property
    def _of_labels(self) -> Words | None:
        """Words of the tick labels, where these say numbers in another unit than the axis has, or with a unit."""
        return None if self._tells_numbers else of_labels(self.axis, self.ticks, self.tick_labels, self.unit)

    def transformed(self, values: Any) -> Floats:
        """Values where Plotly's axis has them."""
        numbers = floats(values)
        return numbers if self.is_native else floats(self.axis.get_transform().transform(numbers))

    def place(self, value: float) -> float:
        """A place for an annotation or a range, for which Plotly wants the logarithm on a logarithmic axis."""
        at = float(self.transformed([value])[0])
        return float(np.log10(at)) if self.scale == "log" and at > 0 else at

    def words(self, values: Any) -> list[str] | None:
        """How each value is told; None where Plotly can tell it from the number."""
        words = told(self.axis)
        if words is None and self.is_category:
            words = self._in_category
        words = words or self._of_labels
        numbers = floats(values)
        if words is not None:
            return [escaped(words(value)) if value == value else "" for value in numbers.tolist()]
        if self.counts and self.scale == "log" and bool((numbers < 1).any()):
            return ["0" if value < 1 else f"{value:,.{DIGITS}g}" for value in numbers.tolist()]
        if self.is_native:
            return None
        return [f"{value:,.{DIGITS}g}{self.suffix}" for value in numbers.tolist()]

    def line(self, variable: str, *, worded: bool) -> str:
        """The line of a hover text that tells this axis' value: the name, then `variable`."""
        value = f"%{{{variable}}}" if worded else f"%{{{variable}:,.{DIGITS}~r}}{self.suffix}"
        return f"{escaped(self.name)}: {value}" if self.name else value

    @property
    def suffix(self) -> str:
        """The unit as it stands behind a number, escaped."""
        return f" {escaped(self.unit)}" if self.unit else ""

    def category(self, value: float) -> str:
        """What the tick next to a value names."""
        nearest = int(np.argmin(np.abs(np.asarray(self.ticks) - value)))
        return " ".join(self.tick_labels[nearest].split()) or f"{value:,.{DIGITS}g}"

    def _in_category(self, value: float) -> str:
        name = self.category(value)
        return f"{name} {self.unit}" if self.unit and is_number(name) else name

    def layout(self, domain: tuple[float, float], anchor: str, **more: Any) -> dict[str, Any]:
        """Plotly's layout of this axis over the part `domain` of the page."""
        low, high = self.axis.get_view_interval()
        if self.axis.get_inverted() != (low > high):
            low, high = high, low
        shown = bool(self.axis.get_visible()) and any(text.strip() for text in self.tick_labels)
        return {
            "domain": list(domain),
            "anchor": anchor,
            "type": "log" if self.scale == "log" else "linear",
            "range": [number(self.place(low), 7), number(self.place(high), 7)],
            "title": {"text": escaped(self.label).replace("\n", "<br>"), "standoff": 5, "font": {"size": 12}},
            "automargin": True,
            "zeroline": False,
            "showgrid": _has_grid(self.axis),
            "gridcolor": _GRID,
            "linecolor": _LINE,
            "showline": True,
            "ticks": "outside",
            "tickcolor": _LINE,
            "ticklen": 4,
            **self._tick_layout(shown),
            **more,
        }

    def _tick_layout(self, shown: bool) -> dict[str, Any]:
        if not shown or not _has_tick_labels(self.axis):
            return {"showticklabels": False}
        if self.scale == "linear" and _are_numbers(self.ticks, self.tick_labels):
            with_prefix = any(text.strip()[-1:] in _PREFIXES for text in self.tick_labels)
            return {"tickformat": "~s"} if with_prefix else {"separatethousands": True, "exponentformat": "none"}
        return {
            "tickmode": "array",
            "tickvals": placed(self.transformed(self.ticks)),
            "ticktext": [escaped(text).replace("\n", "<br>") for text in self.tick_labels],
        }


def tell(axis: Axis, words: Words) -> None:
    """Say how a value of `axis` is worded when one points at it, where its number is not what the axis shows.

    Axes that share it are worded alike.
    """
    setattr(axis, _WORDS, words)


def told(axis: Axis) -> Words | None:
    """What `tell` was given for this axis, or for one that it shares its values with."""
    axes: Any = axis.axes
    which = "x" if axis is axes.xaxis else "y"
    alike = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    every = [axis, *(getattr(one, f"{which}axis") for one in alike.get_siblings(axes))]
    return next((words for one in every if (words := getattr(one, _WORDS, None)) is not None), None)


def side(axis: Axis, key: str, label: str | None = None) -> Side:
    """One axis of a drawn figure; `label` instead of its own, where another axis has it for both."""
    own = axis.get_label_text() or ""
    shown = own if label is None else label
    name, unit = parts(shown)
    ticks = _ticks(axis)
    labels = () if isinstance(axis.get_major_formatter(), NullFormatter) else _tick_labels(axis, ticks)
    return Side(
        axis=axis,
        key=key,
        label=own,
        name=name,
        unit=unit,
        scale=axis.get_scale(),
        ticks=ticks,
        tick_labels=labels,
        counts="(number)" in shown,
    )


def domain(axes: Axes, frame: BboxBase) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where a panel lies in the `frame` of all panels, as shares of width and height."""
    box = axes.get_position()
    along = ((box.x0 - frame.x0) / frame.width, (box.x1 - frame.x0) / frame.width)
    up = ((box.y0 - frame.y0) / frame.height, (box.y1 - frame.y0) / frame.height)
    return _share(along), _share(up)


def _share(ends: tuple[float, float]) -> tuple[float, float]:
    """Plotly refuses what is outside of its frame, if only by rounding."""
    return max(0.0, round(float(ends[0]), 4)), min(1.0, round(float(ends[1]), 4))


def _ticks(axis: Axis) -> tuple[float, ...]:
    low, high = sorted(axis.get_view_interval())
    places = floats(axis.get_majorticklocs())
    room = 1e-9 * (high - low)
    return tuple(float(place) for place in places if low - room <= place <= high + room)


def _tick_labels(axis: Axis, ticks: Sequence[float]) -> tuple[str, ...]:
    """What stands at the ticks; matplotlib's own formatters know all ticks, and the given labels go by their place."""
    places = floats(axis.get_majorticklocs()).tolist()
    by_place = dict(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))
    return tuple(str(by_place[tick]) for tick in ticks)


def _as_number(text: str) -> float | None:
    plain = text.replace("\N{MINUS SIGN}", "-").replace(",", "").strip()
    factor = _PREFIXES.get(plain[-1:], 1.0)
    try:
        return float(plain if factor == 1 else plain[:-1]) * factor
    except ValueError:
        return None


def _are_numbers(ticks: Sequence[float], labels: Sequence[str]) -> bool:
    """Whether the labels are just the numbers of their places."""
    for tick, text in zip(ticks, labels, strict=bool(labels)):
        value = _as_number(text)
        if value is None or abs(value - tick) > _TICK_ERROR * max(abs(tick), 1e-12):
            return False
    return True


def _has_tick_labels(axis: Any) -> bool:
    shown = axis.get_tick_params(which="major")
    sides = ("labelleft", "labelright") if axis.axis_name == "y" else ("labelbottom", "labeltop")
    return any(shown.get(one, True) for one in sides)


def _has_grid(axis: Axis) -> bool:
    return bool(axis.get_tick_params(which="major").get("gridOn", True))
