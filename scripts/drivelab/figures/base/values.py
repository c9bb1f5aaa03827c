"""Values of a drawn figure for its SVG: texts of its marks for a pointing reader, and its panels.

`marked` adds ids of the marks to the SVG, and returns their values. A page needs nothing else of a figure.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from drivelab.figures.base.marks import Panel, colour_bars, marks, numbers
from drivelab.figures.base.words import Side, time_of

_DIGITS_OF_ENDS = 7


@contextmanager
def marked(figure: Figure) -> Iterator[dict[str, Any]]:
    """Mark the artists of a laid out figure with ids for its SVG, and return its values for JSON.

    Ids are `p0` of a panel, `m0` of a mark, `k0` of a legend entry, `n0` of a text at a place of the data and `c0` of a
    second scale of a panel, numbered through the figure. The values (`panels`, `legend`) have the same order.
    """
    legends = [*figure.legends, *(legend for axes in figure.axes if (legend := axes.get_legend()))]
    entries = [
        (handle, text)
        for legend in legends
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True)
        if handle is not None
    ]
    names = [text.get_text() for _, text in entries]
    bars = [bar.ax for _, bar in colour_bars(figure)]
    panels = [axes for axes in figure.axes if axes.get_visible() and axes.axison and axes not in bars]
    ids = _Ids()
    of_panels = [_panel(axes, panels, names, ids) for axes in panels]
    for entry in entries:
        ids.add("k", *entry)
    before = {artist: artist.get_gid() for artist in ids.given}
    for artist, gid in ids.given.items():
        artist.set_gid(gid)
    try:
        yield {"panels": of_panels, "legend": [name.replace("\n", " ") for name in names]}
    finally:
        for artist, own in before.items():
            artist.set_gid(own)


class _Ids:
    """Ids of artists, numbered by their kind."""

    def __init__(self) -> None:
        self.given: dict[Artist, str] = {}
        self._numbers = {kind: count() for kind in "pmknc"}

    def add(self, kind: str, *artists: Artist) -> int:
        """Give all `artists` the next id of a kind; returns its number."""
        number = next(self._numbers[kind])
        self.given |= dict.fromkeys(artists, f"{kind}{number}")
        return number


def _panel(axes: Axes, panels: list[Axes], names: list[str], ids: _Ids) -> dict[str, Any]:
    height = float(axes.figure.bbox.height)
    ids.add("p", axes)
    for second in axes.child_axes:
        ids.add("c", second)
    sides = {which: Side.of(_axis(axes, which), _label_of(axes, panels, which)) for which in "xy"}
    box = axes.bbox
    panel_values: dict[str, Any] = {
        "box": [_px(box.x0), _px(height - box.y1), _px(box.x1), _px(height - box.y0)],
        **{which: _side(side, which, axes, panels) for which, side in sides.items()},
        "marks": [{"m": ids.add("m", *artists), **mark} for mark, artists in marks(Panel(axes, **sides, legend=names))],
    }
    notes = _notes(axes, height, ids)
    return {**panel_values, "notes": notes} if notes else panel_values


def _axis(axes: Axes, which: str) -> Any:
    return axes.xaxis if which == "x" else axes.yaxis


def _side(side: Side, which: str, axes: Axes, panels: list[Axes]) -> dict[str, Any]:
    """Return an axis for the page: name, unit, scale, limits, ticks, and the axis that it moves with."""
    ends = axes.get_xlim() if which == "x" else axes.get_ylim()
    box = axes.bbox
    at = side.axis.get_transform().transform(np.asarray(side.ticks, dtype=float))
    low, high = side.axis.get_transform().transform(np.asarray(ends, dtype=float))
    share = (at - low) / (high - low)
    pixels = box.x0 + share * box.width if which == "x" else axes.figure.bbox.height - box.y0 - share * box.height
    side_values: dict[str, Any] = {
        "name": side.name,
        "unit": side.unit,
        "scale": "log" if side.axis.get_scale() == "log" else "linear",
        "ends": numbers(side.transformed(ends), _DIGITS_OF_ENDS),
        "ticks": [_px(pixel) for pixel in pixels.tolist()],
        "with": next(place for place, panel in enumerate(panels) if panel is axes or _share(axes, panel, which)),
    }
    if side.digits:
        side_values["plain"] = side.digits
    time = time_of(side.axis)
    return {**side_values, "time": list(time)} if time else side_values


def _notes(axes: Axes, height: float, ids: _Ids) -> list[list[Any]]:
    """Return texts at places of the data: id, anchor in pixels, and the axes along which they move."""
    notes = []
    for text in axes.texts:
        along, up = _in_data(text, axes)
        if not (along or up) or not text.get_visible() or not text.get_text().strip():
            continue
        x, y = text.xy if isinstance(text, Annotation) else text.get_position()
        at_x = axes.transData.transform((x, axes.get_ylim()[0]))[0] if along else 0.0
        at_y = height - axes.transData.transform((axes.get_xlim()[0], y))[1] if up else 0.0
        notes.append([ids.add("n", text), _px(at_x), _px(at_y), "x" * along + "y" * up])
    return notes


def _in_data(text: Text, axes: Axes) -> tuple[bool, bool]:
    """Return whether the place of a text is in data coordinates, along x and along y."""
    if isinstance(text, Annotation):
        coords = text.xycoords if isinstance(text.xycoords, tuple) else (text.xycoords, text.xycoords)
        return coords[0] == "data", coords[1] == "data"
    along, up = text.get_transform().contains_branch_seperately(axes.transData)
    return bool(along), bool(up)


def _px(value: float) -> float:
    return round(float(value), 2)


def _label_of(axes: Axes, panels: list[Axes], which: str) -> str:
    """Return the label of an axis, or of a shared axis, as figures label only the outermost."""
    alike = [axes, *(panel for panel in panels if _share(axes, panel, which))]
    return next(filter(None, (_axis(panel, which).get_label_text() for panel in alike)), "")


def _share(axes: Axes, other: Axes, which: str) -> bool:
    shared = axes.get_shared_x_axes() if which == "x" else axes.get_shared_y_axes()
    return axes is not other and bool(shared.joined(axes, other))
