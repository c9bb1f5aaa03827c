"""Words for the value of a point: by the unit of its axis, by its tick labels, or as declared."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.container import BarContainer
from matplotlib.ticker import FuncFormatter, NullFormatter

Floats = npt.NDArray[np.float64]
Words = Callable[[float], str]

DIGITS = 5
"""Digits of a value with a fraction, more than a picture shows; whole numbers have all their digits."""
_GROUP = re.compile(r"\s*\((?P<unit>(?:[^()]|\([^()]*\))*)\)(?= *(?:[,:\n]|$))")
_PRAISE = re.compile(r",?\s*(?:← better|better →)")
_NOT_A_UNIT = ("number", "")
_NUMBER = re.compile(r"^(?P<sign>\+?)(?P<number>-?[\d,]*\.?\d+)(?P<unit>(?:[^\d.,].*)?)$")
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_FACTORS = (1.0, 1e3, 1e6, 1e9, 1e12, 2.0**10, 2.0**20, 2.0**30, 2.0**40)
_ROUNDED = 0.006
"""Relative error of a tick label of three digits."""
_TICK_ERROR = 0.01


@dataclass(frozen=True)
class _Said:
    """Arguments of `say`."""

    lines: Sequence[str] | str
    name: str | None
    at: tuple[float, float, float] | None


_of_axis: WeakKeyDictionary[Axis, Words] = WeakKeyDictionary()
_time_of_axis: WeakKeyDictionary[Axis, tuple[float, float]] = WeakKeyDictionary()
_of_artist: WeakKeyDictionary[Artist, _Said] = WeakKeyDictionary()


def tell(axis: Axis, words: Words) -> None:
    """Set the words for the values of `axis` and shared axes, if the number is not what the axis shows."""
    _of_axis[axis] = words


def time(axis: Axis, unit_s: float, start_s: float = 0.0) -> None:
    """Declare a time axis in units of `unit_s` seconds that begins `start_s` seconds into the recording.

    A report zooms the time axes of one recording together.
    """
    _time_of_axis[axis] = (unit_s, start_s)


def time_of(axis: Axis) -> tuple[float, float] | None:
    """Return what `time` declared for an axis or a shared axis."""
    return next((_time_of_axis[shared] for shared in _alike(axis) if shared in _time_of_axis), None)


def say(
    artist: Artist | BarContainer,
    lines: Sequence[str] | str,
    name: str | None = None,
    at: tuple[float, float, float] | None = None,
) -> None:
    """Add a line of text to each point of `artist`: one line per point, or one for all points.

    `name` replaces the label of the artist. `at` is the place of an artist in three dimensions, which then has no other
    text.
    """
    _of_artist[_first(artist)] = _Said(lines, name, at)


def said(artist: Artist | BarContainer, points: int) -> list[str] | None:
    """Return the line of each of an artist's `points`; raises ValueError if their numbers differ."""
    text = _of_artist.get(_first(artist))
    if text is None or not text.lines:
        return None
    lines = [text.lines] * points if isinstance(text.lines, str) else list(text.lines)
    if len(lines) != points:
        raise ValueError(f"{points} points cannot have {len(lines)} lines")
    return lines


def has_lines(artist: Artist) -> bool:
    """Return whether `say` gave the artist a line of text for each point."""
    text = _of_artist.get(artist)
    return text is not None and not isinstance(text.lines, str)


def called(artist: Artist | BarContainer) -> str | None:
    """Return the name that `say` gave an artist, or None."""
    text = _of_artist.get(_first(artist))
    return text.name if text else None


def place_of(artist: Artist) -> tuple[float, float, float] | None:
    """Return the place in three dimensions that `say` gave an artist, or None."""
    text = _of_artist.get(artist)
    return text.at if text else None


def _first(artist: Any) -> Artist:
    """Return the artist, or the first patch of a container of bars: a tuple has no weak reference."""
    first: Artist = artist.patches[0] if isinstance(artist, BarContainer) else artist
    return first


def floats(values: Any) -> Floats:
    """Return the values of an artist as floats; masked values are NaN."""
    return np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)


def parts(label: str) -> tuple[str, str]:
    """Split an axis label such as `I/O rate, reads (IOPS), log scale` into name and unit (may be empty).

    Of several units, which alternate at the ticks, the first is returned.
    """
    plain = _PRAISE.sub("", label)
    groups = list(_GROUP.finditer(plain))
    if not groups:
        return " ".join(plain.partition(",")[0].split()), ""
    unit = groups[-1]["unit"].partition(",")[0].strip()
    return " ".join(plain[: groups[-1].start()].split()), "" if unit in _NOT_A_UNIT else unit


@dataclass(frozen=True)
class Side:
    """One axis of a panel: its scale, its ticks, and its words for a value."""

    axis: Axis = field(repr=False)
    name: str
    """Name of the quantity, without the unit."""
    unit: str
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    counts: bool
    """Whether the axis counts things; a logarithmic axis shows zero as a count below 1."""

    @classmethod
    def of(cls, axis: Axis, label: str) -> Side:
        """Read a drawn axis; `label` is its own, or that of the axis labelled for both."""
        name, unit = parts(label)
        ticks = _ticks(axis)
        hidden = isinstance(axis.get_major_formatter(), NullFormatter)
        return cls(axis, name, unit, ticks, () if hidden else _labels(axis, ticks), "(number)" in label)

    @property
    def scale(self) -> str:
        """Scale of `transformed` values: `log` or `linear`."""
        return "log" if self.axis.get_scale() == "log" else "linear"

    @property
    def has_plain_numbers(self) -> bool:
        """Whether each tick label is the number of its place."""
        for tick, text in zip(self.ticks, self.labels, strict=bool(self.labels)):
            value = _as_number(text)
            if value is None or abs(value - tick) > _TICK_ERROR * max(abs(tick), 1e-12):
                return False
        return True

    def transformed(self, values: Any) -> Floats:
        """Return values on a linear or logarithmic scale, the only scales of a page."""
        numbers = floats(values)
        native = self.axis.get_scale() in ("linear", "log")
        return numbers if native else floats(self.axis.get_transform().transform(numbers))

    def words(self, values: Any) -> list[str] | None:
        """Return each value in words, or None if number and unit are enough."""
        numbers = floats(values)
        how = self._how
        if how is not None:
            return [how(value) if value == value else "" for value in numbers.tolist()]
        if self.counts and self.scale == "log" and bool((numbers < 1).any()):
            return ["0" if value < 1 else f"{value:,.{DIGITS}g}" for value in numbers.tolist()]
        if self.axis.get_scale() in ("linear", "log"):
            return None
        return [self.plain(value) for value in numbers.tolist()]

    def plain(self, value: float) -> str:
        """Return a number with the unit of the axis."""
        return f"{grouped(value)} {self.unit}".rstrip()

    @property
    def _how(self) -> Words | None:
        words = next((_of_axis[axis] for axis in _alike(self.axis) if axis in _of_axis), None)
        if words is not None or self.has_plain_numbers:
            return words
        by_labels = _words_of_labels(self.axis, self.ticks, self.labels, self.unit)
        names = self.axis.get_scale() == "linear" and bool(self.ticks) and all(at == round(at) for at in self.ticks)
        return by_labels or (self._category if names else None)

    def _category(self, value: float) -> str:
        """Return the label of the nearest tick, on an axis whose ticks are names."""
        nearest = int(np.argmin(np.abs(np.asarray(self.ticks) - value)))
        name = " ".join(self.labels[nearest].split()) or grouped(value)
        number = _NUMBER.match(_ascii(name))
        return f"{name} {self.unit}" if self.unit and number is not None and not number["unit"] else name


def grouped(value: float) -> str:
    """Return a number with thousands separators: all digits of a whole number, else `DIGITS` digits."""
    return f"{value:,.0f}" if value == round(value) and abs(value) < 1e15 else f"{value:,.{DIGITS}g}"


def _alike(axis: Axis) -> list[Axis]:
    """Return the axis and those that share its values."""
    axes: Any = axis.axes
    which = next((name for name in "xy" if getattr(axes, f"{name}axis") is axis), "")
    if not which:
        return [axis]
    group = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    return [axis, *(getattr(other, f"{which}axis") for other in group.get_siblings(axes))]


def _ticks(axis: Axis) -> tuple[float, ...]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    return tuple(place for place in floats(axis.get_majorticklocs()).tolist() if low - room <= place <= high + room)


def _labels(axis: Axis, ticks: Sequence[float]) -> tuple[str, ...]:
    """Return the tick labels; formatters need all ticks, as fixed labels depend on their order."""
    places = floats(axis.get_majorticklocs()).tolist()
    by_place = dict(zip(places, axis.get_major_formatter().format_ticks(places), strict=True))
    return tuple(str(by_place[tick]) for tick in ticks)


def _ascii(text: str) -> str:
    return text.replace("\N{MINUS SIGN}", "-").strip()


def _as_number(text: str) -> float | None:
    plain = _ascii(text).replace(",", "")
    factor = _PREFIXES.get(plain[-1:], 1.0)
    try:
        return float(plain if factor == 1 else plain[:-1]) * factor
    except ValueError:
        return None


def _words_of_labels(axis: Axis, ticks: Sequence[float], labels: Sequence[str], unit: str) -> Words | None:
    """Return words like the tick labels with more digits: `1.2 ms` for 1200 µs, `64 KiB` for 65536.

    Returns None if a label is not the number of its place in any unit. `unit` is for labels without a unit.
    """
    formatter = axis.get_major_formatter()
    named = [(tick, label) for tick, label in zip(ticks, labels, strict=bool(labels)) if label.strip()]
    if not isinstance(formatter, FuncFormatter) or not named:
        return None
    if any(_factor(tick, label) is None for tick, label in named):
        return None

    def words(value: float) -> str:
        if not isfinite(value):
            return ""
        text = formatter(value, None)
        number, factor = _NUMBER.match(_ascii(text)), _factor(value, text)
        if number is None or factor is None:
            return str(text)
        own = number["unit"]
        if own in _PREFIXES:  # tick labels are short; here is room for all digits
            own, factor = "", 1.0
        return f"{number['sign']}{grouped(value / factor)}{own or (f' {unit}' if unit else '')}"

    return words


def _factor(value: float, text: str) -> float | None:
    """Return how many units of the axis are one unit of the text."""
    match = _NUMBER.match(_ascii(text))
    number = float(match["number"].replace(",", "")) if match else 0.0
    if match is None or number == 0:
        return 1.0 if match is not None and value == 0 else None
    nearest = min(_FACTORS, key=lambda factor: abs(value / number - factor) / factor)
    return nearest if abs(value / number - nearest) <= _ROUNDED * nearest else None
