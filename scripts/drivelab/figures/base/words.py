"""Words for a reader who points at a figure, declared where the figure is drawn: of an axis, and of an artist."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.container import BarContainer
from matplotlib.ticker import NullFormatter

from drivelab.figures.base.quantities import grouped

Floats = npt.NDArray[np.float64]
Words = Callable[[float], str]

_GROUP = re.compile(r"\s*\((?P<unit>(?:[^()]|\([^()]*\))*)\)(?= *(?:[,:\n]|$))")
_PRAISE = re.compile(r",?\s*(?:← better|better →)")
_NOT_A_UNIT = ("number", "")
_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_TICK_ERROR = 0.01

_of_axis: WeakKeyDictionary[Axis, Words] = WeakKeyDictionary()
_time_of_axis: WeakKeyDictionary[Axis, tuple[float, float]] = WeakKeyDictionary()
_of_artist: WeakKeyDictionary[Artist, tuple[Sequence[str] | str, str | None]] = WeakKeyDictionary()
_top_of: WeakKeyDictionary[Artist, tuple[float, float, float]] = WeakKeyDictionary()


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
    *,
    top: tuple[float, float, float] | None = None,
) -> None:
    """Add a line of text to each point of `artist`: one line per point, or one for all points.

    `name` replaces the label of the artist. `top` is the place of the text in three dimensions.
    """
    _of_artist[_first(artist)] = (lines, name)
    if top is not None:
        _top_of[_first(artist)] = top


def top_of(artist: Artist) -> tuple[float, float, float] | None:
    """Return the place in three dimensions that `say` gave an artist, or None."""
    return _top_of.get(artist)


def said(artist: Artist, points: int) -> list[str] | None:
    """Return the line of each of an artist's `points`; raises ValueError if their numbers differ."""
    text, _ = _of_artist.get(artist, ("", None))
    if not text:
        return None
    lines = [text] * points if isinstance(text, str) else list(text)
    if len(lines) != points:
        raise ValueError(f"{points} points cannot have {len(lines)} lines")
    return lines


def has_lines(artist: Artist) -> bool:
    """Return whether `say` gave the artist a line of text for each point."""
    return not isinstance(_of_artist.get(artist, ("", None))[0], str)


def called(artist: Artist) -> str | None:
    """Return the name that `say` gave an artist, or None."""
    return _of_artist.get(artist, ("", None))[1]


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

    @classmethod
    def of(cls, axis: Axis, label: str) -> Side:
        """Read a drawn axis; `label` is its own, or that of the axis labelled for both."""
        name, unit = parts(label)
        places = floats(axis.get_majorticklocs()).tolist()
        low, high = sorted(axis.get_view_interval())
        room = 1e-9 * (high - low)
        formatter = axis.get_major_formatter()
        texts = formatter.format_ticks(places)  # of all ticks, as fixed labels depend on their order
        shown = [(at, str(text)) for at, text in zip(places, texts, strict=True) if low - room <= at <= high + room]
        labels = () if isinstance(formatter, NullFormatter) else tuple(text for _, text in shown)
        return cls(axis, name, unit, tuple(at for at, _ in shown), labels)

    @property
    def scale(self) -> str:
        """Scale of `transformed` values: `log` or `linear`."""
        return "log" if self.axis.get_scale() == "log" else "linear"

    @property
    def is_plain(self) -> bool:
        """Whether each tick label is the number of its place."""
        pairs = zip(self.ticks, map(_as_number, self.labels), strict=bool(self.labels))
        return all(
            value is not None and abs(value - tick) <= _TICK_ERROR * max(abs(tick), 1e-12) for tick, value in pairs
        )

    def transformed(self, values: Any) -> Floats:
        """Return values on a linear or logarithmic scale, the only scales of a page."""
        numbers = floats(values)
        return numbers if self._is_native else floats(self.axis.get_transform().transform(numbers))

    def words(self, values: Any) -> list[str] | None:
        """Return each value in words, or None if number and unit are enough."""
        numbers = floats(values)
        how = next((_of_axis[axis] for axis in _alike(self.axis) if axis in _of_axis), None)
        if how is None and self.axis.get_scale() == "linear" and self.ticks and not self.is_plain:
            how = self._category
        if how is None and not self._is_native:
            how = self.plain
        return None if how is None else [how(value) if value == value else "" for value in numbers.tolist()]

    def plain(self, value: float) -> str:
        """Return a number with the unit of the axis."""
        return f"{grouped(value)} {self.unit}".rstrip()

    @property
    def _is_native(self) -> bool:
        return self.axis.get_scale() in ("linear", "log")

    def _category(self, value: float) -> str:
        """Return the label of the nearest tick, on an axis whose ticks are names."""
        nearest = int(np.argmin(np.abs(np.asarray(self.ticks) - value)))
        return " ".join(self.labels[nearest].split()) or grouped(value)


def _alike(axis: Axis) -> list[Axis]:
    """Return the axis and those that share its values."""
    axes: Any = axis.axes
    which = next((name for name in "xy" if getattr(axes, f"{name}axis") is axis), "")
    if not which:
        return [axis]
    group = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    return [axis, *(getattr(other, f"{which}axis") for other in group.get_siblings(axes))]


def _as_number(text: str) -> float | None:
    plain = text.replace("\N{MINUS SIGN}", "-").replace(",", "").strip()
    factor = _PREFIXES.get(plain[-1:], 1.0)
    try:
        return float(plain if factor == 1 else plain[:-1]) * factor
    except ValueError:
        return None
