"""Room that the texts of a Plotly chart need beside its panels: Plotly cuts off what does not fit into the margin."""

from __future__ import annotations

import math
import re
from html import unescape
from typing import Any

NARROWEST_PX = 480
"""Width of the narrowest chart, as in report/templates/charts.js."""
LEAST_MARGIN_PX = 16
_AXIS_PX = 70
"""Of the tick labels and the title of an axis, for which Plotly makes room by itself."""
_LETTER_EM = 0.64
"""Width of a letter of DejaVu Sans, or of Verdana, which is as wide; digits are no wider."""
_LINE_EM = 1.3
_LEAST_PLACE = 0.5
"""Share of the width; a text that begins further on the left hardly moves with the margin, which would take all."""
_PADDING_PX = 4
_SHARE_ON_THE_RIGHT = {"left": 1.0, "center": 0.5, "right": 0.0}


def right_px(layout: dict[str, Any]) -> int:
    """Right margin within which all annotations of a `layout` lie, also where it is drawn narrowest."""
    needed = [_beyond_px(one, layout) for one in layout["annotations"]]
    return math.ceil(max([LEAST_MARGIN_PX, *needed]))


def width_px(note: dict[str, Any]) -> float:
    """Estimated width of the text of an annotation."""
    lines = [unescape(re.sub(r"<[^>]*>", "", line)) for line in str(note["text"]).split("<br>")]
    size = float(note["font"]["size"])
    long, across = max(map(len, lines)) * _LETTER_EM * size, len(lines) * _LINE_EM * size
    turn = math.radians(float(note.get("textangle", 0)))
    return abs(long * math.cos(turn)) + abs(across * math.sin(turn)) + 2 * _PADDING_PX


def place(note: dict[str, Any], layout: dict[str, Any]) -> float:
    """Where an annotation is anchored, as a share of the width of all panels."""
    if note["xref"] == "paper":
        return float(note["x"])
    axis = layout[f"xaxis{str(note['xref']).removesuffix(' domain')[1:]}"]
    at = float(note["x"])
    if not str(note["xref"]).endswith("domain"):
        low, high = axis["range"]
        at = (at - low) / (high - low)
    start, end = axis["domain"]
    return float(start + at * (end - start))


def _beyond_px(note: dict[str, Any], layout: dict[str, Any]) -> float:
    """How far a text reaches beyond the panels on the right."""
    at = place(note, layout)
    overhang = width_px(note) * _SHARE_ON_THE_RIGHT[note["xanchor"]] + float(note.get("xshift", 0))
    room = NARROWEST_PX - _AXIS_PX
    if at >= 1:
        return overhang + (at - 1) * room
    if overhang <= (1 - at) * (room - LEAST_MARGIN_PX):
        return 0.0
    # the margin takes from the room of the panels: overhang - (1 - at) * (room - margin) = margin
    return (overhang - (1 - at) * room) / at if at >= _LEAST_PLACE else 0.0
