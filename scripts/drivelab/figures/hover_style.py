"""Colours, lines and markers of drawn artists as Plotly names them."""

from __future__ import annotations

from html import escape
from typing import Any

from matplotlib.colors import to_hex, to_rgba
from matplotlib.lines import Line2D

PX_PER_PT = 96 / 72
NOTHING = "rgba(0,0,0,0)"
_DASHES = {"-": "solid", "--": "dash", "-.": "dashdot", ":": "dot"}
_MARKERS = {
    "o": "circle",
    ".": "circle",
    "s": "square",
    "^": "triangle-up",
    "v": "triangle-down",
    "<": "triangle-left",
    ">": "triangle-right",
    "D": "diamond",
    "d": "diamond-tall",
    "P": "cross",
    "X": "x",
    "*": "star",
    "p": "pentagon",
    "h": "hexagon",
    "+": "cross-thin-open",
    "x": "x-thin-open",
    "|": "line-ns-open",
    "_": "line-ew-open",
}


def escaped(text: str) -> str:
    """Text as Plotly takes it, for which `&`, `<` and `>` alone mean more than themselves."""
    return escape(text, quote=False)


def colour(value: Any, alpha: float | None = None) -> str:
    """A colour as `#rrggbb`, or as `rgba()` where one sees through it."""
    red, green, blue, opacity = to_rgba(value, alpha)
    if opacity >= 1:
        return str(to_hex((red, green, blue)))
    if opacity <= 0:
        return NOTHING
    return f"rgba({round(255 * red)},{round(255 * green)},{round(255 * blue)},{opacity:.3g})"


def line_style(line: Line2D) -> dict[str, Any]:
    """Colour, width, dash and shape of a line."""
    style: dict[str, Any] = {
        "color": colour(line.get_color(), line.get_alpha()),
        "width": round(line.get_linewidth() * PX_PER_PT, 1),
    }
    dash = _dash(line)
    if dash != "solid":
        style["dash"] = dash
    shape = {"steps-post": "hv", "steps-pre": "vh", "steps": "vh", "steps-mid": "hvh"}.get(line.get_drawstyle())
    if shape:
        style["shape"] = shape
    return style


def _dash(line: Line2D) -> str:
    """A dash by its name; dashes of one's own are dots or dashes by their length in widths of the line."""
    _, pattern = getattr(line, "_unscaled_dash_pattern", (0, None))
    if line.get_linestyle() == "--" and pattern and pattern[0] <= 1.2:
        return "dot"
    return _DASHES.get(str(line.get_linestyle()), "solid")


def marker_style(line: Line2D) -> dict[str, Any] | None:
    """Marker of a line; None where it has none."""
    symbol = _MARKERS.get(str(line.get_marker()))
    if symbol is None:
        return None
    face = line.get_markerfacecolor()
    edge = line.get_markeredgecolor()
    hollow = isinstance(face, str) and face == "none"
    style: dict[str, Any] = {
        "symbol": f"{symbol}-open" if hollow and not symbol.endswith("-open") else symbol,
        "size": round(line.get_markersize() * PX_PER_PT, 1),
        "color": colour(edge if hollow or symbol.endswith("-open") else face, line.get_alpha()),
    }
    if not hollow:
        style["line"] = {"color": colour(edge), "width": round(line.get_markeredgewidth() * PX_PER_PT, 1)}
    return style
