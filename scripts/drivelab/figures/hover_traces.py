"""Plotly traces of the artists of one panel: their values, look and hover text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.lines import Line2D
from matplotlib.patches import Polygon, Rectangle, StepPatch

from drivelab.figures.hover_axes import Side
from drivelab.figures.hover_map import heat_map
from drivelab.figures.hover_names import Names
from drivelab.figures.hover_numbers import Floats, floats, listed, placed
from drivelab.figures.hover_style import NOTHING, PX_PER_PT, colour, escaped, line_style, marker_style

Trace = dict[str, Any]
_POINTS_OF_A_RULE = 17  # a line across the panel can be pointed at along its whole length


@dataclass
class Panel:
    """Axes of matplotlib with the two axes that Plotly has for them."""

    axes: Axes
    x: Side
    y: Side
    names: Names

    def trace(self, artist: Artist, x: Any, y: Any, **more: Any) -> Trace:
        """A trace of points with what they say when one points at them."""
        name, of_legend = self.names.trace(artist)
        along, up = self.x.words(x), self.y.words(y)
        lines = [f"<b>{name}</b>"] if name else []
        lines += [
            self.x.line("customdata[0]" if along else "x", worded=along is not None),
            self.y.line("customdata[1]" if up else "y", worded=up is not None),
        ]
        trace: Trace = {
            "type": "scatter",
            "x": placed(self.x.transformed(x)),
            "y": listed(self.y.transformed(y)),
            "xaxis": self.x.key,
            "yaxis": self.y.key,
            "hovertemplate": "<br>".join(lines) + "<extra></extra>",
            **of_legend,
            **more,
        }
        if along or up:
            nothing = [""] * len(trace["x"])
            trace["customdata"] = [list(pair) for pair in zip(along or nothing, up or nothing, strict=True)]
        return trace


def traces(panel: Panel) -> list[Trace]:
    """All traces of a panel, from the back to the front."""
    bars = [one for one in panel.axes.containers if isinstance(one, BarContainer)]
    in_bars = {id(patch) for one in bars for patch in one.patches}
    drawn: list[tuple[float, Trace]] = []
    for artist in panel.axes.get_children():
        if artist.get_visible() and id(artist) not in in_bars and artist is not panel.axes.patch:
            drawn += [(artist.get_zorder(), trace) for trace in _traces(artist, panel)]
    drawn += [(one.patches[0].get_zorder(), _bar(one, panel)) for one in bars if one.patches]
    return [trace for _, trace in sorted(drawn, key=lambda pair: pair[0])]


@singledispatch
def _traces(artist: Artist, panel: Panel) -> Iterator[Trace]:
    yield from ()


@_traces.register
def _line(artist: Line2D, panel: Panel) -> Iterator[Trace]:
    x, y = floats(artist.get_xdata(orig=False)), floats(artist.get_ydata(orig=False))
    transform = artist.get_transform()
    if transform == panel.axes.get_yaxis_transform(which="grid"):
        x, y = _across(panel.axes.get_xlim(), panel.x.scale), np.full(_POINTS_OF_A_RULE, y[0])
    elif transform == panel.axes.get_xaxis_transform(which="grid"):
        x, y = np.full(_POINTS_OF_A_RULE, x[0]), _across(panel.axes.get_ylim(), panel.y.scale)
    elif not transform.contains_branch(panel.axes.transData) or not len(x):
        return
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
    yield panel.trace(artist, x, y, **more)


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
            yield panel.trace(artist, at[:, 0], at[:, 1], mode="lines", line={"width": 0}, fill="toself",
                              fillcolor=colour(faces[0]), hoveron="points")  # fmt: skip


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
    yield heat_map(artist, edges[0, :, 0], edges[:, 0, 1], panel.x, panel.y)


def _bar(container: BarContainer, panel: Panel) -> Trace:
    """Bars with the values at their ends and their bases."""
    upright = container.orientation != "horizontal"
    boxes = floats([patch.get_bbox().extents for patch in container.patches]).reshape(-1, 4)
    x0, y0, x1, y1 = boxes.T
    # a bar that goes down or left has its end before its base
    widths = floats([patch.get_width() for patch in container.patches])
    heights = floats([patch.get_height() for patch in container.patches])
    starts = floats([(patch.get_y() if upright else patch.get_x()) for patch in container.patches])
    lengths, thick = (heights, np.abs(x1 - x0)) if upright else (widths, np.abs(y1 - y0))
    middles = (x0 + x1) / 2 if upright else (y0 + y1) / 2
    ends = starts + lengths
    first = container.patches[0]
    faces = [colour(patch.get_facecolor()) for patch in container.patches]
    marker: Trace = {
        "color": faces[0] if len(set(faces)) == 1 else faces,
        "line": {"color": colour(first.get_edgecolor()), "width": round(first.get_linewidth() * PX_PER_PT, 1)},
    }
    if first.get_hatch():
        marker["pattern"] = {"shape": first.get_hatch()[0], "fillmode": "overlay", "fgcolor": marker["line"]["color"]}
    x, y = (middles, ends) if upright else (ends, middles)
    trace = panel.trace(first, x, y, marker=marker)
    trace |= {"type": "bar", "orientation": "v" if upright else "h", "width": listed(thick), "textposition": "none"}
    if starts.any():  # Plotly adds a bar's length to its base, in the values of its axis
        trace["base"] = listed(starts)
        trace["y" if upright else "x"] = listed(lengths)
        worth = panel.y if upright else panel.x
        told = worth.words(lengths) or [f"{value:,.5g}{worth.suffix}" for value in lengths.tolist()]
        where = panel.x.words(x) if upright else panel.y.words(y)
        places = where or [f"{value:,.5g}" for value in middles]
        trace["customdata"] = [[place, value] for place, value in zip(places, told, strict=True)]
        name = f"<b>{trace['name']}</b><br>" if trace["name"] else ""
        trace["hovertemplate"] = f"{name}%{{customdata[0]}}<br>{escaped(worth.name)}: %{{customdata[1]}}<extra></extra>"
    return trace
