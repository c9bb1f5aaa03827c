"""In which words a chart tells a value: those that a figure gives, else those of the axis' own tick labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import isfinite
from typing import Any

from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter

from drivelab.figures.hover_numbers import DIGITS
from drivelab.figures.hover_style import escaped

Words = Callable[[float], str]

_GROUP = re.compile(r"\s*\((?P<unit>(?:[^()]|\([^()]*\))*)\)(?= *(?:[,:\n]|$))")
_PRAISE = re.compile(r",?\s*(?:← better|better →)")
_NOT_A_UNIT = ("number", "")
_NUMBER = re.compile(r"^(?P<sign>\+?)(?P<number>-?[\d,]*\.?\d+)(?P<unit>(?:[^\d.,].*)?)$")
_PREFIXES = ("k", "M", "G", "T")
_FACTORS = (1.0, 1e3, 1e6, 1e9, 1e12, 2.0**10, 2.0**20, 2.0**30, 2.0**40)
_ROUNDED = 0.006  # of a label of three digits
_SAID = "lines_of_its_points"
_CALLED = "name_of_its_points"


def say(artist: Any, lines: Sequence[str] | str, name: str | None = None) -> None:
    """Give each point of `artist` a line of its own in what it says, or all of them the same; `name` instead of the
    artist's label, where that is no name."""
    setattr(artist, _SAID, lines)
    if name is not None:
        setattr(artist, _CALLED, name)


def said(artist: Any, points: int) -> list[str] | None:
    """What `say` was given, escaped, for each of the points of the artist."""
    lines: Sequence[str] | str | None = getattr(artist, _SAID, None)
    if lines is None:
        return None
    every = [escaped(line) for line in ([lines] * points if isinstance(lines, str) else lines)]
    if len(every) != points:
        raise ValueError(f"{points} points cannot say {len(every)} lines")
    return every


def called(artist: Any) -> str | None:
    """The name that `say` was given."""
    name: str | None = getattr(artist, _CALLED, None)
    return name


def parts(label: str) -> tuple[str, str]:
    """Name and unit of an axis label such as `I/O rate, reads (IOPS), log scale`; the unit may be none.

    Of several units, one of which stands at each tick, this is the first.
    """
    plain = _PRAISE.sub("", label)
    groups = list(_GROUP.finditer(plain))
    if not groups:
        return " ".join(plain.partition(",")[0].split()), ""
    unit = groups[-1]["unit"].partition(",")[0].strip()
    return " ".join(plain[: groups[-1].start()].split()), "" if unit in _NOT_A_UNIT else unit


def of_labels(axis: Axis, ticks: Sequence[float], labels: Sequence[str], unit: str) -> Words | None:
    """Words as those of the tick labels, with more digits: `1.2 ms` for 1200 µs, `64 KiB` for 65536.

    None where the labels are no numbers of their places in some unit. `unit` is of labels without one.
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
        found, factor = _NUMBER.match(_plain(text)), _factor(value, text)
        if found is None or factor is None:
            return str(text)  # true in any case
        own = found["unit"]
        if own in _PREFIXES:  # of a short tick label; there is room for the whole number
            own, factor = "", 1.0
        return f"{value / factor:{found['sign']},.{DIGITS}g}{own or (f' {unit}' if unit else '')}"

    return words


def is_number(text: str) -> bool:
    """Whether nothing but a number stands there."""
    found = _NUMBER.match(_plain(text))
    return found is not None and not found["unit"]


def _plain(text: str) -> str:
    return text.replace("\N{MINUS SIGN}", "-").strip()


def _factor(value: float, text: str) -> float | None:
    """How many of the axis' own unit is one of the unit that the text has."""
    found = _NUMBER.match(_plain(text))
    number = float(found["number"].replace(",", "")) if found else 0.0
    if found is None or number == 0:
        return 1.0 if found is not None and value == 0 else None
    nearest = min(_FACTORS, key=lambda one: abs(value / number - one) / one)
    return nearest if abs(value / number - nearest) <= _ROUNDED * nearest else None
