"""Words for a reader who points at a figure, declared where the figure is drawn: of an axis, and of an artist."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from matplotlib.artist import Artist
from matplotlib.axis import Axis
from matplotlib.container import BarContainer
from matplotlib.ticker import LogFormatter, NullFormatter, ScalarFormatter

from drivelab.figures.base.quantities import NUMBER, Texts, grouped

Floats = npt.NDArray[np.float64]

_GROUP = re.compile(r"\s*\((?P<unit>(?:[^()]|\([^()]*\))*)\)(?= *(?:[,:\n]|$))")
_PRAISE = re.compile(r",?\s*(?:← better|better →)")
_NOT_A_UNIT = ("number", "")

_texts_of: WeakKeyDictionary[Axis, Texts] = WeakKeyDictionary()
_time_of: WeakKeyDictionary[Axis, tuple[float, float]] = WeakKeyDictionary()
_said_of: WeakKeyDictionary[Artist, Sequence[str] | str] = WeakKeyDictionary()


def tell(axis: Axis, texts: Texts) -> None:
    """Set how `axis` and axes that share its values write their values."""
    _texts_of[axis] = texts


def time(axis: Axis, unit_s: float, start_s: float = 0.0) -> None:
    """Declare a time axis in units of `unit_s` seconds that begins `start_s` seconds into the recording.

    A report zooms the time axes of one recording together.
    """
    _time_of[axis] = (unit_s, start_s)


def time_of(axis: Axis) -> tuple[float, float] | None:
    """Return what `time` declared for an axis or a shared axis."""
    return next((_time_of[shared] for shared in _alike(axis) if shared in _time_of), None)


def say(artist: Artist | BarContainer, lines: Sequence[str] | str) -> None:
    """Add a line of text to each point of `artist`: one line per point, or one for all points."""
    _said_of[_first(artist)] = lines


def said(artist: Artist, points: int) -> list[str] | None:
    """Return the line of each of an artist's `points`; raises ValueError if their numbers differ."""
    text = _said_of.get(artist)
    if not text:
        return None
    lines = [text] * points if isinstance(text, str) else list(text)
    if len(lines) != points:
        raise ValueError(f"{points} points cannot have {len(lines)} lines")
    return lines


def has_lines(artist: Artist) -> bool:
    """Return whether `say` gave the artist a line of text for each point."""
    return not isinstance(_said_of.get(artist, ""), str)


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
    """One axis of a panel: its ticks, and its words for a value."""

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
    def texts(self) -> Texts | None:
        """How the axis, or one that shares its values, writes its values."""
        return next((_texts_of[axis] for axis in _alike(self.axis) if axis in _texts_of), None)

    @property
    def digits(self) -> str:
        """How a page that zooms writes new ticks: `k` with thousands as k, `n` as numbers, empty for no new ticks."""
        if not (self.labels and self._is_native):
            return ""
        if self.texts is NUMBER:
            return "k"
        return "n" if (self._has_numbers if self.texts is None else self.texts.exact is None) else ""

    def transformed(self, values: Any) -> Floats:
        """Return values on a linear or logarithmic scale, the only scales of a page."""
        numbers = floats(values)
        return numbers if self._is_native else floats(self.axis.get_transform().transform(numbers))

    def words(self, values: Any) -> list[str] | None:
        """Return each value in words, or None if number and unit are enough."""
        how = None if self.texts is None else self.texts.exact
        if self.texts is None and self.labels and not self._has_numbers:
            how = self._category
        if how is None and not self._is_native:
            how = self.plain
        return None if how is None else [how(value) if value == value else "" for value in floats(values).tolist()]

    def plain(self, value: float) -> str:
        """Return a number with the unit of the axis."""
        return f"{grouped(value)} {self.unit}".rstrip()

    @property
    def _has_numbers(self) -> bool:
        """Whether matplotlib writes the ticks, as numbers."""
        return isinstance(self.axis.get_major_formatter(), ScalarFormatter | LogFormatter)

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
