"""One panel of a figure, and what a trace of it says of each of its points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes

from drivelab.figures.hover_axes import Side
from drivelab.figures.hover_names import Names
from drivelab.figures.hover_numbers import listed, placed
from drivelab.figures.hover_words import said

Trace = dict[str, Any]


@dataclass
class Panel:
    """Axes of matplotlib with the two axes that Plotly has for them."""

    axes: Axes
    x: Side
    y: Side
    names: Names

    def trace(self, artist: Artist, x: Any, y: Any, *, only: str = "xy", **more: Any) -> Trace:
        """A trace of points with what they say when one points at them: their values of the axes in `only`."""
        name, of_legend = self.names.trace(artist)
        along, up, extra = self.x.words(x), self.y.words(y), said(artist, len(x))
        lines = [f"<b>{name}</b>"] if name else []
        if "x" in only:
            lines.append(self.x.line("customdata[0]" if along else "x", worded=along is not None))
        if "y" in only:
            lines.append(self.y.line("customdata[1]" if up else "y", worded=up is not None))
        trace: Trace = {
            "type": "scatter",
            "x": placed(self.x.transformed(x)),
            "y": listed(self.y.transformed(y)),
            "xaxis": self.x.key,
            "yaxis": self.y.key,
            "hovertemplate": "<br>".join(lines) + ("<br>%{customdata[2]}" if extra else "") + "<extra></extra>",
            **of_legend,
            **more,
        }
        if along or up or extra:
            nothing = [""] * len(trace["x"])
            columns = [along or nothing, up or nothing, *([extra] if extra else [])]
            trace["customdata"] = list(map(list, zip(*columns, strict=True)))
        return trace


def silent(trace: Trace) -> Trace:
    """The same trace, of which nothing is told when one points at it."""
    kept = {key: value for key, value in trace.items() if key not in ("hovertemplate", "customdata")}
    return {**kept, "hoverinfo": "skip"}
