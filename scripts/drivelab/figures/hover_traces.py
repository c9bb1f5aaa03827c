"""Plotly traces of the artists of one panel: their values, look and hover text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle, StepPatch

from drivelab.figures.hover_bars import bar
from drivelab.figures.hover_map import heat_map
from drivelab.figures.hover_numbers import Floats, floats
from drivelab.figures.hover_panel import Panel, Trace, silent
from drivelab.figures.hover_style import NOTHING, PX_PER_PT, colour, escaped, line_style, marker_style

_POINTS_OF_A_RULE = 17  # a line across the panel can be pointed at along its whole length
_LEVELS = ("level", "median")
"""Marks (gid) of short lines at one value, which is all that they tell."""
_SILENT = ("alike", "interval", "basis")
"""Marks of what tells nothing that was measured: a line to compare with, and whiskers, which end where the panel does;
what has them tells its interval itself."""


def traces(panel: Panel) -> list[Trace]:
    """All traces of a panel, from the back to the front."""
    bars = [one for one in panel.axes.containers if isinstance(one, BarContainer)]
    in_bars = {id(patch) for one in bars for patch in one.patches}
    drawn: list[tuple[float, Trace]] = []
    for artist in panel.axes.get_children():
        if artist.get_visible() and id(artist) not in in_bars and artist is not panel.axes.patch:
            drawn += [(artist.get_zorder(), trace) for trace in _traces(artist, panel)]
    drawn += [(one.patches[0].get_zorder(), bar(one, panel)) for one in bars if one.patches]
    return [trace for _, trace in sorted(drawn, key=lambda pair: pair[0])]


@singledispatch
def _traces(artist: Artist, panel: Panel) -> Iterator[Trace]:
    yield from ()


@_traces.register
def _line(artist: Line2D, panel: Panel) -> Iterator[Trace]:
    x, y = floats(artist.get_xdata(orig=False)), floats(artist.get_ydata(orig=False))
    transform, only = artist.get_transform(), _told_of(artist, x, y)
    is_rule = True
    if transform == panel.axes.get_yaxis_transform(which="grid"):
        x, y, only = _across(panel.axes.get_xlim(), panel.x.scale), np.full(_POINTS_OF_A_RULE, y[0]), "y"
    elif transform == panel.axes.get_xaxis_transform(which="grid"):
        x, y, only = np.full(_POINTS_OF_A_RULE, x[0]), _across(panel.axes.get_ylim(), panel.y.scale), "x"
    elif not transform.contains_branch(panel.axes.transData) or not len(x):
        return
    else:
        is_rule = False
    marker = marker_style(artist)
    has_line = artist.get_linestyle() not in ("None", "none", "", " ")
    if not has_line and marker is None:
        return
    more: Trace = {"mode": "+".join((["lines"] if has_line else []) + (["markers"] if marker else []))}
    if has_line:
        more["line"] = line_style(artist)
    if marker:
        more["marker"] = marker
        every = artist.get_markevery()
        if isinstance(every, int) and every > 1:
            marker["maxdisplayed"] = -(-len(x) // every)
    trace = panel.trace(artist, x, y, only=only, **more)
    # a rule without a name is a mark for the eye; what it crosses was not measured there
    yield silent(trace) if artist.get_gid() in _SILENT or (is_rule and not trace["name"]) else trace


def _told_of(artist: Line2D, x: Floats, y: Floats) -> str:
    """The axes whose values the points of a line tell."""
    if artist.get_gid() == "fills":  # on a line of measured points, and between these
        return "x"
    if artist.get_gid() in _LEVELS and len(x) == 2:
        return "y" if y[0] == y[1] else "x"
    return "xy"


def _across(limits: tuple[float, float], scale: str) -> Floats:
    low, high = limits
    if scale == "log" and low > 0:
        return floats(np.geomspace(low, high, _POINTS_OF_A_RULE))
    return floats(np.linspace(low, high, _POINTS_OF_A_RULE))


@_traces.register
def _points(artist: PathCollection, panel: Panel) -> Iterator[Trace]:
    at = floats(artist.get_offsets()).reshape(-1, 2)
    if not len(at):
        return
    faces = [colour(one) for one in artist.get_facecolor()] or [NOTHING]
    edges = [colour(one) for one in artist.get_edgecolor()] or faces
    sizes = [round(float(size) ** 0.5 * PX_PER_PT, 1) for size in artist.get_sizes()] or [8.0]
    marker = {
        "color": faces[0] if len(set(faces)) == 1 else faces,
        "size": sizes[0] if len(set(sizes)) == 1 else sizes,
        "line": {"color": edges[0] if len(set(edges)) == 1 else edges, "width": 1},
    }
    yield panel.trace(artist, at[:, 0], at[:, 1], mode="markers", marker=marker)


@_traces.register
def _segments(artist: LineCollection, panel: Panel) -> Iterator[Trace]:
    """Lines of one look, as those of error bars; a gap lies between two of them."""
    parts = [floats(part).reshape(-1, 2) for part in artist.get_segments()]
    if not parts or not artist.get_transform().contains_branch(panel.axes.transData):
        return
    gap = np.full((1, 2), np.nan)
    points = np.concatenate([piece for part in parts for piece in (part, gap)])[:-1]
    colours, widths = artist.get_color(), floats(artist.get_linewidth()).reshape(-1)
    line = {"color": colour(colours[0]), "width": round(float(widths[0]) * PX_PER_PT, 1)}
    yield panel.trace(artist, points[:, 0], points[:, 1], mode="lines", line=line, connectgaps=False)


@_traces.register
def _steps(artist: StepPatch, panel: Panel) -> Iterator[Trace]:
    values, edges, baseline = artist.get_data()
    if not len(values):
        return
    upright = artist.orientation == "vertical"
    if artist.get_fill() and np.ndim(baseline):
        yield _on_a_base(artist, floats(values), floats(edges), floats(baseline), panel)
        return
    heights = floats([*values, values[-1]])
    x, y = (edges, heights) if upright else (heights, edges)
    more: Trace = {"mode": "lines", "line": {"shape": "hv" if upright else "vh", "width": 0}}
    if artist.get_fill():
        more |= {"fill": "tozeroy" if upright else "tozerox", "fillcolor": colour(artist.get_facecolor())}
    if baseline is None or not artist.get_fill():
        more["line"] |= {
            "color": colour(artist.get_edgecolor()),
            "width": round(artist.get_linewidth() * PX_PER_PT, 1),
        }
    yield panel.trace(artist, x, y, **more)


def _on_a_base(artist: StepPatch, values: Floats, edges: Floats, base: Floats, panel: Panel) -> Trace:
    """Steps that stand on those of others: the area between, whose points tell how high it is."""
    along = np.repeat(edges, 2)[1:-1]
    x, y = np.concatenate([along, along[::-1]]), np.concatenate([np.repeat(values, 2), np.repeat(base, 2)[::-1]])
    heights = np.repeat(values - base, 2)
    trace = panel.trace(artist, x, y, mode="lines", line={"width": 0}, fill="toself", hoveron="points",
                        fillcolor=colour(artist.get_facecolor()))  # fmt: skip
    told = panel.y.words(heights) or [f"{height:,.5g}{panel.y.suffix}" for height in heights.tolist()]
    where = panel.x.words(along) or [f"{place:,.5g}{panel.x.suffix}" for place in along.tolist()]
    pairs = [list(pair) for pair in zip(where, told, strict=True)]
    trace["customdata"] = pairs + pairs[::-1]
    name = f"<b>{trace['name']}</b><br>" if trace["name"] else ""
    trace["hovertemplate"] = (
        f"{name}{escaped(panel.x.name)}: %{{customdata[0]}}<br>"
        f"{escaped(panel.y.name)}: %{{customdata[1]}}<extra></extra>"
    )
    return trace


@_traces.register
def _area(artist: PolyCollection, panel: Panel) -> Iterator[Trace]:
    """What is filled between two lines; its edge can be pointed at."""
    faces = artist.get_facecolor()
    for path in artist.get_paths() if len(faces) else []:
        at = floats(path.vertices)
        if len(at) > 2:
            trace = panel.trace(artist, at[:, 0], at[:, 1], mode="lines", line={"width": 0}, fill="toself",
                                fillcolor=colour(faces[0]), hoveron="points")  # fmt: skip
            yield trace if trace["name"] else silent(trace)  # it lies under a line that tells the same


@_traces.register
def _patch(artist: Rectangle, panel: Panel) -> Iterator[Trace]:
    """A rectangle in the data, which is no bar and no band across the panel (those are shapes)."""
    if artist.get_transform() == artist.get_patch_transform() + panel.axes.transData:
        yield _outline(artist, artist.get_corners(), panel)


@_traces.register
def _polygon(artist: Polygon, panel: Panel) -> Iterator[Trace]:
    yield _outline(artist, artist.get_xy(), panel)


def _outline(artist: Any, corners: Any, panel: Panel) -> Trace:
    at = floats(corners)
    return panel.trace(artist, at[:, 0], at[:, 1], mode="lines", line={"width": 0}, fill="toself",
                       fillcolor=colour(artist.get_facecolor()))  # fmt: skip


@_traces.register
def _mesh(artist: QuadMesh, panel: Panel) -> Iterator[Trace]:
    edges = floats(artist.get_coordinates())
    name, _ = panel.names.trace(artist)
    yield heat_map(artist, edges[0, :, 0], edges[:, 0, 1], panel.x, panel.y, name)
