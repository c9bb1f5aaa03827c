"""The marks of a panel (lines, bars, steps, maps, bands) with the values of their points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.colorbar import Colorbar
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch
from mpl_toolkits.mplot3d.proj3d import proj_transform

from drivelab.figures.base.quantities import DIGITS
from drivelab.figures.base.words import Floats, Side, called, floats, has_lines, parts, said, top_of

Mark = dict[str, Any]
Found = tuple[Mark, list[Artist]]
"""Values of a mark, and its artists."""

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
        mark |= {"x": numbers(self.x.transformed(x)), "y": numbers(self.y.transformed(y))}
        for key, side in (("x", self.x), ("y", self.y)):
            if key not in only:
                mark[f"{key}w"] = None
            elif (words := side.words(x if key == "x" else y)) is not None:
                mark[f"{key}w"] = words
        if (lines := said(artist, len(mark["x"]))) is not None:
            mark["also"] = lines if len(set(lines)) > 1 else lines[0]
        return mark | more

    def silent(self, artist: Artist, moves: str = "xy") -> Mark:
        """Return a mark without values: its name, and the number of its entry in the legend."""
        label = self.label(artist)
        name = called(artist) or label.replace("\n", " ")
        return {
            **({"name": name} if name else {}),
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


def marks(panel: Panel) -> list[Found]:
    """Return the marks of a panel, from the back to the front."""
    bars = [group for group in panel.axes.containers if isinstance(group, BarContainer) and group.patches]
    others = [artist for artist in panel.axes.get_children() if artist.get_visible()
              and artist is not panel.axes.patch and not any(artist in group.patches for group in bars)]  # fmt: skip
    drawn: list[tuple[float, Found]] = [
        (artist.get_zorder(), (mark, [artist])) for artist in others for mark in _marks(artist, panel)
    ]
    drawn += [(group.patches[0].get_zorder(), (_bars(group, panel), list(group.patches))) for group in bars]
    return [mark for _, mark in sorted(drawn, key=lambda pair: pair[0])]


@singledispatch
def _marks(artist: Artist, panel: Panel) -> Iterator[Mark]:
    yield from ()


@_marks.register
def _line(artist: Line2D, panel: Panel) -> Iterator[Mark]:
    x, y = floats(artist.get_xdata(orig=False)), floats(artist.get_ydata(orig=False))
    transform, only, moves = artist.get_transform(), _axes_told(artist, x, y), "xy"
    if transform == panel.axes.get_yaxis_transform(which="grid"):
        x, y, only, moves = _across(panel.axes.get_xlim(), panel.x), np.full(_POINTS_OF_A_RULE, y[0]), "y", "y"
    elif transform == panel.axes.get_xaxis_transform(which="grid"):
        x, y, only, moves = np.full(_POINTS_OF_A_RULE, x[0]), _across(panel.axes.get_ylim(), panel.y), "x", "x"
    elif not transform.contains_branch(panel.axes.transData) or not len(x):
        return
    elif len(x) > _LONG and not has_lines(artist):
        chosen = _apart(floats(transform.transform(np.column_stack([x, y]))))
        x, y = x[chosen], y[chosen]
    # a rule without a name has no value to show
    if artist.get_gid() in _SILENT or (moves != "xy" and not panel.label(artist)):
        yield panel.silent(artist, moves)
    else:
        yield panel.mark(artist, x, y, only=only, moves=moves, **({"rule": 1} if moves != "xy" else {}))


def _apart(places: Floats) -> list[int]:
    """Return the points that are at least _APART_PX from the one before, so that every spike stays."""
    chosen: list[int] = []
    before = (-np.inf, -np.inf)
    for point, (across, up) in enumerate(places.tolist()):
        if max(abs(across - before[0]), abs(up - before[1])) >= _APART_PX:
            chosen.append(point)
            before = (across, up)
    return chosen


def _axes_told(artist: Line2D, x: Floats, y: Floats) -> str:
    """Return the axes whose values a line's points show."""
    if artist.get_gid() == "fills":  # between measured points
        return "x"
    if artist.get_gid() in _LEVELS and len(x) == 2:
        return "y" if y[0] == y[1] else "x"
    return "xy"


def _across(limits: tuple[float, float], side: Side) -> Floats:
    low, high = limits
    spread = np.geomspace if side.scale == "log" and low > 0 else np.linspace
    return floats(spread(low, high, _POINTS_OF_A_RULE))


@_marks.register
def _steps(artist: StepPatch, panel: Panel) -> Iterator[Mark]:
    """Yield steps with their own height in the middle of each interval, also if stacked."""
    values, edges, baseline = artist.get_data()
    tops, sides = floats(values), floats(edges)
    if len(tops):
        heights = tops - floats(baseline) if artist.get_fill() and np.ndim(baseline) else tops
        yield panel.mark(artist, (sides[:-1] + sides[1:]) / 2, tops, **_instead(panel.y, "y", heights, tops))


def _instead(side: Side, key: str, shown: Floats, places: Floats) -> Mark:
    """Return the words of shown values that differ from their positions."""
    if bool(np.array_equal(shown, places, equal_nan=True)):
        return {}
    return {f"{key}w": side.words(shown) or [side.plain(value) for value in shown.tolist()]}


@_marks.register
def _area(artist: PolyCollection, panel: Panel) -> Iterator[Mark]:
    """Yield a filled area without values, as the line above it has them."""
    yield panel.silent(artist)


@_marks.register
def _band(artist: Rectangle, panel: Panel) -> Iterator[Mark]:
    """Yield a band across the panel (`axvspan`, `axhspan`) without values."""
    along = artist.get_data_transform() == panel.axes.get_xaxis_transform(which="grid")
    up = artist.get_data_transform() == panel.axes.get_yaxis_transform(which="grid")
    if along or up:
        yield panel.silent(artist, "x" if along else "y")


@_marks.register
def _map(artist: QuadMesh, panel: Panel) -> Iterator[Mark]:
    """Yield edges and a value per cell, row by row, with name and unit of the colour bar of the same scale."""
    edges = floats(artist.get_coordinates())
    sides = {"x": (panel.x, edges[0, :, 0]), "y": (panel.y, edges[:, 0, 1])}
    bar = next((bar for shown, bar in colour_bars(panel.axes.get_figure(root=True)) if shown.norm is artist.norm), None)
    name, unit = parts(bar.ax.get_ylabel() or bar.ax.get_xlabel()) if bar else ("", "")
    mark: Mark = panel.silent(artist) | {"z": numbers(artist.get_array(), _DIGITS_OF_A_MAP), "z_name": name,
                                         "z_unit": unit}  # fmt: skip
    for key, (side, ends) in sides.items():
        middle = (ends[:-1] + ends[1:]) / 2
        mark[key] = numbers(side.transformed(ends))
        mark[f"{key}w"] = side.words(middle) or [side.plain(float(f"{value:.4g}")) for value in middle.tolist()]
    yield mark


def colour_bars(figure: Any) -> Iterator[tuple[Any, Colorbar]]:
    """Yield the artist of each colour bar of a figure, and the bar."""
    for axes in figure.axes:
        for artist in axes.collections:
            if artist.colorbar is not None:
                yield artist, artist.colorbar


def _bars(group: BarContainer, panel: Panel) -> Mark:
    """Return bars with their lengths; on a logarithmic axis, with their ends, as they begin at the basis."""
    upright = group.orientation != "horizontal"
    x0, y0, x1, y1 = floats([patch.get_bbox().extents for patch in group.patches]).T
    starts = floats([patch.get_y() if upright else patch.get_x() for patch in group.patches])
    lengths = floats([patch.get_height() if upright else patch.get_width() for patch in group.patches])
    worth, ends = panel.y if upright else panel.x, starts + lengths
    shown = ends if worth.scale == "log" else lengths
    drawn = np.minimum(ends, max(panel.axes.get_ylim() if upright else panel.axes.get_xlim()))
    x, y = ((x0 + x1) / 2, drawn) if upright else (drawn, (y0 + y1) / 2)
    mark = panel.mark(group.patches[0], x, y) | _instead(worth, "y" if upright else "x", shown, drawn)
    return mark | {"bar": 1}


def columns(axes: Any, height_px: float) -> list[tuple[Mark, Artist]]:
    """Return the columns of axes in three dimensions, with the texts that `say` gave them.

    `at` is the middle of the top in pixels from the upper left corner of the page, whose height is `height_px`.
    """
    found: list[tuple[Mark, Artist]] = []
    for column in axes.collections:
        if (top := top_of(column)) is not None:
            x, y = axes.transData.transform(proj_transform(*top, axes.get_proj())[:2])
            found.append(
                ({"at": [round(float(x), 1), round(height_px - float(y), 1)], "also": said(column, 1)}, column)
            )
    return found
