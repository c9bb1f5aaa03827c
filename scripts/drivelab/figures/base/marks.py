"""The marks of a panel (lines, bars, maps, bands) with the values of their points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from drivelab.figures.base.quantities import DIGITS
from drivelab.figures.base.words import Floats, Side, floats, has_lines, parts, said

Mark = dict[str, Any]

_POINTS_OF_A_RULE = 17
"""Points of a line across the panel, so that a reader can point at it anywhere."""
_LEVELS = ("level", "median")
"""Marks (gid) of short lines that show only one value."""
_SILENT = ("alike", "interval", "basis")
"""Marks (gid) without values of their own: reference lines, and whiskers, whose interval is at the point."""
_DIGITS_OF_A_MAP = 4
_LONG = 100
_APART_PX = 3.0
"""A reader cannot point at one of two points that are closer; a line of more than _LONG points leaves them out."""


@dataclass
class Panel:
    """Axes of a figure with the names and units of its marks."""

    axes: Axes
    x: Side
    y: Side
    legend: Sequence[str]
    """Texts of the entries of the figure's legends."""

    def mark(self, artist: Artist, x: Any, y: Any, *, only: str = "xy", moves: str = "xy", **more: Any) -> Mark:
        """Return the values of points at x, y on the axes in `only`.

        `moves` names the axes along which a zoom moves the mark.
        """
        mark = self.silent(artist, moves)
        for key, side, values in (("x", self.x, x), ("y", self.y, y)):
            mark[key] = numbers(side.transformed(values))
            if key not in only:
                mark[f"{key}w"] = None
            elif (words := side.words(values)) is not None:
                mark[f"{key}w"] = words
        if (lines := said(artist, len(mark["x"]))) is not None:
            mark["also"] = lines if len(set(lines)) > 1 else lines[0]
        return mark | more

    def silent(self, artist: Artist, moves: str = "xy") -> Mark:
        """Return a mark without values: its name, and the number of its entry in the legend."""
        label = self.label(artist)
        return {
            **({"name": label.replace("\n", " ")} if label else {}),
            **({"key": self.legend.index(label)} if label in self.legend else {}),
            **({"moves": moves} if moves != "xy" else {}),
        }

    def label(self, artist: Artist) -> str:
        """Return the label of an artist, or of its bars; empty if it is for no reader."""
        of_bars = (group.get_label() for group in self.axes.containers if artist in group)
        label = str(next(of_bars, artist.get_label()) or "")
        return "" if label.startswith("_") else label


def numbers(values: Any, digits: int = DIGITS) -> list[float | int | None]:
    """Return values for JSON: whole numbers exactly, others with `digits`, unknown values as None."""
    return [_number(value, digits) for value in floats(values).reshape(-1).tolist()]


def _number(value: float, digits: int) -> float | int | None:
    if not np.isfinite(value):
        return None
    shown = value if value == round(value) else float(f"{value:.{digits}g}")
    return int(shown) if shown == round(shown) else shown


def marks(panel: Panel) -> list[tuple[Mark, list[Artist]]]:
    """Return the marks of a panel with their artists, from the back to the front."""
    bars = [group for group in panel.axes.containers if isinstance(group, BarContainer) and group.patches]
    patches = {panel.axes.patch, *(patch for group in bars for patch in group.patches)}
    drawn: list[tuple[float, Mark, list[Artist]]] = [
        (artist.get_zorder(), mark, [artist])
        for artist in panel.axes.get_children()
        if artist.get_visible() and artist not in patches and (mark := _mark(artist, panel)) is not None
    ]
    drawn += [(group.patches[0].get_zorder(), _bars(group, panel), list(group.patches)) for group in bars]
    return [(mark, artists) for _, mark, artists in sorted(drawn, key=lambda found: found[0])]


def _mark(artist: Artist, panel: Panel) -> Mark | None:
    match artist:
        case Line2D():
            return _line(artist, panel)
        case QuadMesh():
            return _map(artist, panel)
        case PolyCollection():  # a filled area; the line above it has its values
            return panel.silent(artist)
        case Rectangle():  # a band across the panel, if it is one
            transform, axes = artist.get_data_transform(), panel.axes
            if transform == axes.get_xaxis_transform(which="grid"):
                return panel.silent(artist, "x")
            return panel.silent(artist, "y") if transform == axes.get_yaxis_transform(which="grid") else None
    return None


def _line(artist: Line2D, panel: Panel) -> Mark | None:
    x, y = floats(artist.get_xdata(orig=False)), floats(artist.get_ydata(orig=False))
    transform, only, moves = artist.get_transform(), "xy", "xy"
    if transform == panel.axes.get_yaxis_transform(which="grid"):
        x, y, only, moves = _across(panel.axes.get_xlim(), panel.x), np.full(_POINTS_OF_A_RULE, y[0]), "y", "y"
    elif transform == panel.axes.get_xaxis_transform(which="grid"):
        x, y, only, moves = np.full(_POINTS_OF_A_RULE, x[0]), _across(panel.axes.get_ylim(), panel.y), "x", "x"
    elif not transform.contains_branch(panel.axes.transData) or not len(x):
        return None
    elif artist.get_gid() in _LEVELS and len(x) == 2:
        only = "y" if y[0] == y[1] else "x"
    elif len(x) > _LONG and not has_lines(artist):
        chosen = _apart(floats(transform.transform(np.column_stack([x, y]))))
        x, y = x[chosen], y[chosen]
    # a rule without a name has no value to show
    if artist.get_gid() in _SILENT or (moves != "xy" and not panel.label(artist)):
        return panel.silent(artist, moves)
    return panel.mark(artist, x, y, only=only, moves=moves, **({"rule": 1} if moves != "xy" else {}))


def _apart(places: Floats) -> list[int]:
    """Return the points that are at least _APART_PX from the one before, so that every spike stays."""
    chosen: list[int] = []
    before = (-np.inf, -np.inf)
    for point, (across, up) in enumerate(places.tolist()):
        if max(abs(across - before[0]), abs(up - before[1])) >= _APART_PX:
            chosen.append(point)
            before = (across, up)
    return chosen


def _across(limits: tuple[float, float], side: Side) -> Floats:
    low, high = limits
    spread = np.geomspace if side.axis.get_scale() == "log" and low > 0 else np.linspace
    return floats(spread(low, high, _POINTS_OF_A_RULE))


def _map(artist: QuadMesh, panel: Panel) -> Mark:
    """Return edges and a value per cell, row by row, with name and unit of the colour bar of the same scale."""
    edges = floats(artist.get_coordinates())
    bar = next((bar for shown, bar in colour_bars(panel.axes.get_figure(root=True)) if shown.norm is artist.norm), None)
    name, unit = parts(bar.ax.get_ylabel() or bar.ax.get_xlabel()) if bar else ("", "")
    mark: Mark = panel.silent(artist) | {"z": numbers(artist.get_array(), _DIGITS_OF_A_MAP), "z_name": name,
                                         "z_unit": unit}  # fmt: skip
    for key, side, ends in (("x", panel.x, edges[0, :, 0]), ("y", panel.y, edges[:, 0, 1])):
        middle = (ends[:-1] + ends[1:]) / 2
        mark[key] = numbers(side.transformed(ends))
        mark[f"{key}w"] = side.words(middle) or [side.plain(float(f"{value:.4g}")) for value in middle.tolist()]
    return mark


def colour_bars(figure: Any) -> list[tuple[Any, Colorbar]]:
    """Return the artist of each colour bar of a figure, and the bar."""
    artists = [artist for axes in figure.axes for artist in axes.collections]
    return [(artist, artist.colorbar) for artist in artists if artist.colorbar is not None]


def _bars(group: BarContainer, panel: Panel) -> Mark:
    """Return bars with their lengths; on a logarithmic axis, with their ends, as they begin at the basis."""
    upright = group.orientation != "horizontal"
    boxes = floats([patch.get_bbox().extents for patch in group.patches])
    middle = boxes[:, [0, 2] if upright else [1, 3]].mean(axis=1)
    starts = floats([patch.get_y() if upright else patch.get_x() for patch in group.patches])
    lengths = floats([patch.get_height() if upright else patch.get_width() for patch in group.patches])
    worth, ends = panel.y if upright else panel.x, starts + lengths
    shown = ends if worth.axis.get_scale() == "log" else lengths
    drawn = np.minimum(ends, max(panel.axes.get_ylim() if upright else panel.axes.get_xlim()))
    mark = panel.mark(group.patches[0], *((middle, drawn) if upright else (drawn, middle)))
    if not np.array_equal(shown, drawn, equal_nan=True):  # the place of a bar's end is not its value
        mark["yw" if upright else "xw"] = worth.words(shown) or [worth.plain(value) for value in shown.tolist()]
    return mark | {"bar": 1}
