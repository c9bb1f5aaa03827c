"""Bars of a panel as a Plotly trace."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.container import BarContainer

from drivelab.figures.hover_numbers import Floats, floats, listed
from drivelab.figures.hover_panel import Panel, Trace
from drivelab.figures.hover_style import PX_PER_PT, colour, escaped
from drivelab.figures.hover_words import said


def _room(container: BarContainer, panel: Panel, upright: bool) -> Floats:
    """Where bars that are cut off end, as before a column of numbers; without an end for others."""
    place, ends = (1 if upright else 0), []
    for patch in container.patches:
        box: Any = patch.get_clip_box()
        is_cut = box is not None and not np.allclose(box.extents, panel.axes.bbox.extents)
        ends.append(panel.axes.transData.inverted().transform(box.max)[place] if is_cut else np.inf)
    return floats(ends)


def bar(container: BarContainer, panel: Panel) -> Trace:
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
    worth, along = (panel.y, panel.x) if upright else (panel.x, panel.y)
    drawn = np.minimum(ends, _room(container, panel, upright))
    if starts.any() or (drawn < ends).any():  # Plotly adds a bar's length to its base, in the values of its axis
        trace["base"] = listed(starts)
        trace["y" if upright else "x"] = listed(drawn - starts)
        # on a logarithmic axis bars begin at what they are compared with, and are no parts that add up
        tells = ends if worth.scale == "log" else lengths
        told = worth.words(tells) or [f"{value:,.5g}{worth.suffix}" for value in tells.tolist()]
        places = along.words(middles) or [f"{value:,.5g}{along.suffix}" for value in middles]
        trace["customdata"] = [[place, value] for place, value in zip(places, told, strict=True)]
        name = f"<b>{trace['name']}</b><br>" if trace["name"] else ""
        trace["hovertemplate"] = f"{name}%{{customdata[0]}}<br>{escaped(worth.name)}: %{{customdata[1]}}<extra></extra>"
    if extra := said(container, len(x)):
        pairs = trace.get("customdata") or [["", ""]] * len(extra)
        trace["customdata"] = [[*pair, line] for pair, line in zip(pairs, extra, strict=True)]
        trace["hovertemplate"] = trace["hovertemplate"].replace("<extra>", "<br>%{customdata[2]}<extra>")
    return trace
