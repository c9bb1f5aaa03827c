"""Shared parts of the trace figures: badges, notes, axes of time and bytes, and empty figures."""

from __future__ import annotations

import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.core.units import format_duration
from drivelab.figures.base import axes as ax
from drivelab.figures.base import style, words
from drivelab.figures.base.quantities import Quantity, elapsed

BADGES = {"lossy": "#ff8c7a", "incomplete": "#ffc08a", "issue times": "#f5e08a", "derived": "#d6c3f0",
          "imported": "#c9e3b4"}  # fmt: skip
"""Colours of the marks of a trace; `style.label` adds the badge of a virtual drive."""
DIRECTIONS = {
    "read": "#0173b2",
    "write": "#de8f05",
    "flush": "#029e73",
    "discard": "#cc78bc",
    "write-zeroes": "#949494",
}
"""Colour of each operation in all figures, from seaborn's palette for colour-blind readers."""
LINES = {"read": "-", "write": "--", "flush": ":", "discard": "-.", "write-zeroes": (0, (1, 3))}
_LINE_IN = 0.165
_SIZES = (("B", 0), ("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("PiB", 50))


def label(figure: Figure, overview: pd.Series) -> None:
    """Label a figure with the trace's name, size, marks and notes, from a row of `trace_overview`."""
    for mark in overview["marks"]:
        if mark in BADGES:
            text = "trace of ISSUE TIMES" if mark == "issue times" else f"{mark.upper()} trace"
            style.badge(figure, text, BADGES[mark])
    style.label(
        figure,
        reduced=False,
        virtual="virtual" in overview["marks"],
        clock="wall",
        subject=f"{overview['trace']}: {_extent(int(overview['requests']), float(overview['duration_s']))}",
    )
    if len(overview["notes"]):
        notes = "; ".join(overview["notes"])
        style.note(figure, notes[0].upper() + notes[1:])
        # The header lines would make the axes smaller.
        style.grow(figure, _LINE_IN * (2 + len(notes) // 95))


def _extent(requests: int, duration_s: float) -> str:
    many = f"{requests:,} request{'' if requests == 1 else 's'}"
    return f"{many} in {duration(duration_s)}" if duration_s else f"{many} at one instant"


def duration(seconds: float) -> str:
    """Return a duration for people, also below a second."""
    if seconds >= 60:
        return format_duration(seconds)
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def nothing(title: str, reason: str) -> Figure:
    """Return a figure that says why there is nothing to show, as the file must exist."""
    figure = style.new_figure(title, height_in=2.0)
    figure.text(0.5, 0.3, textwrap.fill(reason, 80), ha="center", color=style.MUTED, gid="nothing", in_layout=False)
    return figure


def size(name: str, largest_bytes: float) -> Quantity:
    """Return the quantity of an axis of bytes that ends at `largest_bytes`."""
    fitting = [(unit, shift) for unit, shift in _SIZES if largest_bytes >= 2.0 * 2.0**shift]
    unit, shift = fitting[-1] if fitting else _SIZES[0]
    return Quantity(name, unit, 2.0**shift)


def time(end_s: float) -> Quantity:
    """Return the quantity of an axis of time that ends at `end_s`, also below a second."""
    name = "Time since the first request"
    for unit, divisor in (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3)):
        if end_s < 2000 * divisor and end_s < 1:
            return Quantity(name, unit, divisor)
    return Quantity(name, elapsed(end_s).unit, elapsed(end_s).divisor)


def time_axis(axes: Axes, end_s: float) -> float:
    """Label and limit an x axis of time since the first request; return the divisor for seconds."""
    scale = time(end_s)
    axes.set_xlim(0, end_s / scale.divisor or 1.0)
    axes.set_xlabel(scale.label)
    words.time(axes.xaxis, scale.divisor)
    ax.plain_numbers(axes, "x")
    return scale.divisor


def edges_s(over_time: pd.DataFrame) -> np.ndarray:
    """Return the edges of the intervals, shape (rows + 1,)."""
    return np.append(over_time["begin_s"].to_numpy(float), over_time["end_s"].iloc[-1])
