"""The marks of a panel (lines, bars, steps, maps, bands) with the values of their points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.proj3d import proj_transform

from drivelab.figures.base.legends import Legends
from drivelab.figures.base.words import DIGITS, Floats, Side, called, floats, has_lines, place_of, said

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
    legends: Legends

    def mark(self, artist: Artist, x: Any, y: Any, *, only: str = "xy", moves: str = "xy", **more: Any) -> Mark:
        """Return the values of points at x, y on the axes in `only`.

        `moves` names the axes along which a zoom moves the mark.
        """
        mark: Mark = {**self._named(artist), **({} if moves == "xy" else {"moves": moves})}
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
        """Return a mark without values."""
        return {**self._named(artist), **({} if moves == "xy" else {"moves": moves})}

    def _named(self, artist: Artist) -> Mark:
        entry = self.legends.entry(artist)
        name = called(artist) or self.legends.name(artist)
        return {**({"name": name} if name else {}), **({} if entry is None else {"key": entry})}


def numbers(values: Any, digits: int = DIGITS) -> list[float | int | None]:
    """Return values for JSON: whole numbers exactly, others with `digits`, unknown values as None."""
    exact = floats(values).reshape(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(exact)))
        places = np.where(np.isfinite(places), np.clip(places, -300, 300), 0)
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        shown = np.where(exact == np.rint(exact), exact, np.round(exact / down * up) / up * down)
    return [
        None if not np.isfinite(number) else int(number) if number == int(number) else float(f"{number:.{digits}g}")
        for number in shown.tolist()
    ]


def marks(panel: Panel) -> list[Found]:
    """Return the marks of a panel, from the back to the front."""
    bars = [
        container for container in panel.axes.containers if isinstance(container, BarContainer) and container.patches
    ]
    in_bars = {id(patch) for group in bars for patch in group.patches}
    drawn: list[tuple[float, Found]] = []
    for artist in panel.axes.get_children():
        if artist.get_visible() and id(artist) not in in_bars and artist is not panel.axes.patch:
            drawn += [(artist.get_zorder(), (mark, [artist])) for mark in _marks(artist, panel)]
    drawn += [
        (container.patches[0].get_zorder(), (_bars(container, panel), list(container.patches))) for container in bars
    ]
    return [mark for _, mark in sorted(drawn, key=lambda pair: pair[0])]


@singledispatch
def _marks(artist: Artist, panel: Panel) -> Iterator[Mark]:
    yield from ()


@_marks.register
def _line(artist: Line2D, panel: Panel) -> Iterator[Mark]:
    x, y = floats(artist.get_xdata(orig=False)), floats(artist.get_ydata(orig=False))
    transform, only, moves, name = artist.get_transform(), _axes_told(artist, x, y), "xy", panel.legends.name(artist)
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
    if artist.get_gid() in _SILENT or (moves != "xy" and not name):
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
def _segments(artist: LineCollection, panel: Panel) -> Iterator[Mark]:
    """Yield the ends of the intervals of error bars."""
    ends = [floats(part).reshape(-1, 2) for part in artist.get_segments()]
    if ends and artist.get_transform().contains_branch(panel.axes.transData):
        at = np.concatenate(ends)
        yield panel.mark(artist, at[:, 0], at[:, 1])


@_marks.register
def _steps(artist: StepPatch, panel: Panel) -> Iterator[Mark]:
    """Yield steps with their own height in the middle of each interval, also if stacked."""
    values, edges, baseline = artist.get_data()
    tops, sides = floats(values), floats(edges)
    if len(tops):
        heights = tops - floats(baseline) if artist.get_fill() and np.ndim(baseline) else tops
        middles = (sides[:-1] + sides[1:]) / 2
        yield panel.mark(artist, middles, tops, **_instead(panel.y, "y", heights, tops))


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
def _mesh(artist: QuadMesh, panel: Panel) -> Iterator[Mark]:
    edges = floats(artist.get_coordinates())
    values = floats(artist.get_array()).reshape(edges.shape[0] - 1, edges.shape[1] - 1)
    yield _map(artist, edges[0, :, 0], edges[:, 0, 1], values, panel)


def _map(artist: Any, x_edges: Floats, y_edges: Floats, values: Floats, panel: Panel) -> Mark:
    """Return edges and a value per cell, row by row, with name and unit of the colour bar."""
    middles = [(edges[:-1] + edges[1:]) / 2 for edges in (x_edges, y_edges)]
    name, unit = panel.legends.of_colours(artist)
    mark: Mark = panel.silent(artist) | {
        "x": numbers(panel.x.transformed(x_edges)),
        "y": numbers(panel.y.transformed(y_edges)),
        "z": numbers(values, _DIGITS_OF_A_MAP),
        "z_name": name,
        "z_unit": unit,
    }
    for key, side, middle in zip("xy", (panel.x, panel.y), middles, strict=True):
        mark[f"{key}w"] = side.words(middle) or [side.plain(float(f"{value:.4g}")) for value in middle.tolist()]
    return mark


def _bars(container: BarContainer, panel: Panel) -> Mark:
    """Return bars with their lengths; on a logarithmic axis, with their ends, as they begin at the basis."""
    upright = container.orientation != "horizontal"
    first = container.patches[0]
    x0, y0, x1, y1 = floats([patch.get_bbox().extents for patch in container.patches]).T
    starts = floats([patch.get_y() if upright else patch.get_x() for patch in container.patches])
    lengths = floats([patch.get_height() if upright else patch.get_width() for patch in container.patches])
    middles = (x0 + x1) / 2 if upright else (y0 + y1) / 2
    worth = panel.y if upright else panel.x
    ends = starts + lengths
    drawn = np.minimum(ends, _room(container, panel, upright))
    lengths = ends if worth.scale == "log" else lengths
    x, y = (middles, drawn) if upright else (drawn, middles)
    mark = panel.mark(first, x, y) | _instead(worth, "y" if upright else "x", lengths, drawn)
    return mark | {"bar": 1}


def _room(container: BarContainer, panel: Panel, upright: bool) -> Floats:
    """Return the ends of bars that are cut off, as before a column of numbers, and infinity for others."""
    place, ends = (1 if upright else 0), []
    for patch in container.patches:
        box: Any = patch.get_clip_box()
        is_cut = box is not None and not np.allclose(box.extents, panel.axes.bbox.extents)
        ends.append(panel.axes.transData.inverted().transform(box.max)[place] if is_cut else np.inf)
    return floats(ends)


def columns(axes: Any) -> list[Found]:
    """Return the columns of axes in three dimensions, with the texts that `say` gave them.

    `at` is the middle of the top in pixels from the lower left corner of the page.
    """
    marks: list[Found] = []
    for column in axes.collections:
        place = place_of(column) if isinstance(column, Poly3DCollection) else None
        if place is not None:
            top = axes.transData.transform(proj_transform(*place, axes.get_proj())[:2])
            marks.append(({"at": [round(float(part), 1) for part in top], "also": said(column, 1)}, [column]))
    return marks
