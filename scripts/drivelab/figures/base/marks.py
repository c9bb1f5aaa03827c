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
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from mpl_toolkits.mplot3d.proj3d import proj_transform

from drivelab.figures.base.legends import Legends
from drivelab.figures.base.words import DIGITS, Floats, Side, called, floats, place_of, said

Mark = dict[str, Any]
Found = tuple[Mark, list[Artist]]
"""Values of a mark, and the artists that draw it."""

_POINTS_OF_A_RULE = 17
"""A line across the panel tells its value along its whole length."""
_LEVELS = ("level", "median")
"""Marks (gid) of short lines at one value, which is all that they tell."""
_SILENT = ("alike", "interval", "basis")
"""Marks that tell nothing measured: lines to compare with, and whiskers, whose interval the point tells."""
_DIGITS_OF_A_MAP = 4


@dataclass
class Panel:
    """Axes of a figure with what its marks are told by."""

    axes: Axes
    x: Side
    y: Side
    legends: Legends

    def mark(self, artist: Artist, x: Any, y: Any, *, only: str = "xy", moves: str = "xy", **more: Any) -> Mark:
        """Return the values of points at x, y, which tell their values on the axes in `only`.

        `moves` names the axes that a zoom moves the mark along.
        """
        found: Mark = {**self._named(artist), **({} if moves == "xy" else {"moves": moves})}
        found |= {"x": numbers(self.x.transformed(x)), "y": numbers(self.y.transformed(y))}
        for key, side in (("x", self.x), ("y", self.y)):
            if key not in only:
                found[f"{key}w"] = None
            elif (words := side.words(x if key == "x" else y)) is not None:
                found[f"{key}w"] = words
        if (lines := said(artist, len(found["x"]))) is not None:
            found["also"] = lines if len(set(lines)) > 1 else lines[0]
        return found | more

    def silent(self, artist: Artist, moves: str = "xy") -> Mark:
        """Return a mark that tells nothing."""
        return {**self._named(artist), **({} if moves == "xy" else {"moves": moves})}

    def _named(self, artist: Artist) -> Mark:
        entry = self.legends.entry(artist)
        name = called(artist) or self.legends.name(artist)
        return {**({"name": name} if name else {}), **({} if entry is None else {"key": entry})}


def numbers(values: Any, digits: int = DIGITS) -> list[float | int | None]:
    """Return values for JSON: whole numbers with all their digits, others with `digits`, None where none is known."""
    exact = floats(values).reshape(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        places = digits - 1 - np.floor(np.log10(np.abs(exact)))
        places = np.where(np.isfinite(places), np.clip(places, -300, 300), 0)
        up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
        shown = np.where(exact == np.rint(exact), exact, np.round(exact / down * up) / up * down)
    return [
        None if not np.isfinite(one) else int(one) if one == int(one) else float(f"{one:.{digits}g}")
        for one in shown.tolist()
    ]


def marks(panel: Panel) -> list[Found]:
    """Return the marks of a panel, from the back to the front."""
    bars = [one for one in panel.axes.containers if isinstance(one, BarContainer) and one.patches]
    in_bars = {id(patch) for one in bars for patch in one.patches}
    drawn: list[tuple[float, Found]] = []
    for artist in panel.axes.get_children():
        if artist.get_visible() and id(artist) not in in_bars and artist is not panel.axes.patch:
            drawn += [(artist.get_zorder(), (mark, [artist])) for mark in _marks(artist, panel)]
    drawn += [(one.patches[0].get_zorder(), (_bars(one, panel), list(one.patches))) for one in bars]
    return [found for _, found in sorted(drawn, key=lambda pair: pair[0])]


@singledispatch
def _marks(artist: Artist, panel: Panel) -> Iterator[Mark]:
    yield from ()


@_marks.register
def _line(artist: Line2D, panel: Panel) -> Iterator[Mark]:
    x, y = floats(artist.get_xdata(orig=False)), floats(artist.get_ydata(orig=False))
    transform, only, moves, name = artist.get_transform(), _told_of(artist, x, y), "xy", panel.legends.name(artist)
    if transform == panel.axes.get_yaxis_transform(which="grid"):
        x, y, only, moves = _across(panel.axes.get_xlim(), panel.x), np.full(_POINTS_OF_A_RULE, y[0]), "y", "y"
    elif transform == panel.axes.get_xaxis_transform(which="grid"):
        x, y, only, moves = np.full(_POINTS_OF_A_RULE, x[0]), _across(panel.axes.get_ylim(), panel.y), "x", "x"
    elif not transform.contains_branch(panel.axes.transData) or not len(x):
        return
    # a rule without a name is a mark for the eye
    if artist.get_gid() in _SILENT or (moves != "xy" and not name):
        yield panel.silent(artist, moves)
    else:
        yield panel.mark(artist, x, y, only=only, moves=moves, **({"rule": 1} if moves != "xy" else {}))


def _told_of(artist: Line2D, x: Floats, y: Floats) -> str:
    """Return the axes whose values the points of a line tell."""
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
    """Whiskers of error bars: the ends of the intervals."""
    ends = [floats(part).reshape(-1, 2) for part in artist.get_segments()]
    if ends and artist.get_transform().contains_branch(panel.axes.transData):
        at = np.concatenate(ends)
        yield panel.mark(artist, at[:, 0], at[:, 1])


@_marks.register
def _steps(artist: StepPatch, panel: Panel) -> Iterator[Mark]:
    """Steps tell their own height in the middle of each interval, also where they stand on other steps."""
    values, edges, baseline = artist.get_data()
    tops, sides = floats(values), floats(edges)
    if len(tops):
        heights = tops - floats(baseline) if artist.get_fill() and np.ndim(baseline) else tops
        middles = (sides[:-1] + sides[1:]) / 2
        yield panel.mark(artist, middles, tops, **_instead(panel.y, "y", heights, tops))


def _instead(side: Side, key: str, told: Floats, places: Floats) -> Mark:
    """Return the words of the values that are told, where they are not those of their places."""
    if bool(np.array_equal(told, places, equal_nan=True)):
        return {}
    return {f"{key}w": side.words(told) or [side.plain(value) for value in told.tolist()]}


@_marks.register
def _area(artist: PolyCollection, panel: Panel) -> Iterator[Mark]:
    """What is filled lies below a line that tells its values."""
    yield panel.silent(artist)


@_marks.register
def _band(artist: Rectangle, panel: Panel) -> Iterator[Mark]:
    """Bands across the panel (`axvspan`, `axhspan`) explain; they tell nothing that was measured."""
    along = artist.get_data_transform() == panel.axes.get_xaxis_transform(which="grid")
    up = artist.get_data_transform() == panel.axes.get_yaxis_transform(which="grid")
    if along or up:
        yield panel.silent(artist, "x" if along else "y")


@_marks.register
def _mesh(artist: QuadMesh, panel: Panel) -> Iterator[Mark]:
    edges = floats(artist.get_coordinates())
    values = floats(artist.get_array()).reshape(edges.shape[0] - 1, edges.shape[1] - 1)
    yield _map(artist, edges[0, :, 0], edges[:, 0, 1], values, panel)


@_marks.register
def _image(artist: AxesImage, panel: Panel) -> Iterator[Mark]:
    left, right, bottom, top = artist.get_extent()
    values = floats(artist.get_array())
    if artist.origin == "upper":
        bottom, top = top, bottom
    rows, columns = values.shape
    yield _map(artist, np.linspace(left, right, columns + 1), np.linspace(bottom, top, rows + 1), values, panel)


def _map(artist: Any, x_edges: Floats, y_edges: Floats, values: Floats, panel: Panel) -> Mark:
    """Cells of colours: edges, and a value for each cell, row by row; the name and unit are those of the colour bar."""
    middles = [(edges[:-1] + edges[1:]) / 2 for edges in (x_edges, y_edges)]
    name, unit = panel.legends.of_colours(artist)
    found: Mark = panel.silent(artist) | {
        "x": numbers(panel.x.transformed(x_edges)),
        "y": numbers(panel.y.transformed(y_edges)),
        "z": numbers(values, _DIGITS_OF_A_MAP),
        "z_name": name,
        "z_unit": unit,
    }
    for key, side, middle in zip("xy", (panel.x, panel.y), middles, strict=True):
        found[f"{key}w"] = side.words(middle) or [side.plain(float(f"{value:.4g}")) for value in middle.tolist()]
    return found


def _bars(container: BarContainer, panel: Panel) -> Mark:
    """Bars tell their length; on a logarithmic axis, where they begin at what they are compared with, their end."""
    upright = container.orientation != "horizontal"
    first = container.patches[0]
    x0, y0, x1, y1 = floats([patch.get_bbox().extents for patch in container.patches]).T
    starts = floats([patch.get_y() if upright else patch.get_x() for patch in container.patches])
    lengths = floats([patch.get_height() if upright else patch.get_width() for patch in container.patches])
    middles = (x0 + x1) / 2 if upright else (y0 + y1) / 2
    worth = panel.y if upright else panel.x
    ends = starts + lengths
    drawn = np.minimum(ends, _room(container, panel, upright))
    told = ends if worth.scale == "log" else lengths
    x, y = (middles, drawn) if upright else (drawn, middles)
    mark = panel.mark(first, x, y) | _instead(worth, "y" if upright else "x", told, drawn)
    return mark | {"bar": 1}


def _room(container: BarContainer, panel: Panel, upright: bool) -> Floats:
    """Return where bars that are cut off end, as before a column of numbers; without an end for others."""
    place, ends = (1 if upright else 0), []
    for patch in container.patches:
        box: Any = patch.get_clip_box()
        is_cut = box is not None and not np.allclose(box.extents, panel.axes.bbox.extents)
        ends.append(panel.axes.transData.inverted().transform(box.max)[place] if is_cut else np.inf)
    return floats(ends)


def columns(axes: Any) -> list[Found]:
    """Return the columns of axes in three dimensions; each tells the lines that `say` gave it.

    `at` has the pixel in the middle of the top, from the lower left corner of the page.
    """
    found: list[Found] = []
    for one in axes.collections:
        place = place_of(one) if isinstance(one, Poly3DCollection) else None
        if place is not None:
            top = axes.transData.transform(proj_transform(*place, axes.get_proj())[:2])
            found.append(({"at": [round(float(part), 1) for part in top], "also": said(one, 1)}, [one]))
    return found
