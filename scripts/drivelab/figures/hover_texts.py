"""What is written on a drawn figure, and the bands behind its data, as Plotly has them."""

from __future__ import annotations

import textwrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Annotation, Text

from drivelab.figures.hover_axes import Side
from drivelab.figures.hover_names import Names
from drivelab.figures.hover_style import PX_PER_PT, colour, escaped

_WRAP = 92
_SMALL_PX = 12
_BLOCK_PX = 11
"""Of a block of text, whose columns must have room where a chart is narrowest."""
_X_ANCHORS = {"left": "left", "center": "center", "right": "right"}
_Y_ANCHORS = {"top": "top", "center": "middle", "center_baseline": "middle", "bottom": "bottom", "baseline": "bottom"}


def header(figure: Figure) -> list[str]:
    """Lines over the chart: the title, the badges, the subject, notes and alarms, as `figures.style` wrote them."""
    by_kind: dict[str, list[Text]] = {}
    for text in figure.texts:
        by_kind.setdefault(str(text.get_gid()), []).append(text)
    title = " ".join(_plain(text) for text in by_kind.get("title", []))
    lines = [f"<b>{line}</b>" for line in _wrapped(title, _WRAP - 14)]
    badges = "  ".join(
        f'<span style="color:#9a5b00;font-weight:bold">[{_wrapped(_plain(text))[0]}]</span>'
        for text in by_kind.get("badge", [])
    )
    small = [badges] if badges else []
    small += [line for text in by_kind.get("subject", []) for line in _wrapped(_plain(text))]
    small += [line for text in by_kind.get("note", []) for line in _wrapped(_plain(text))]
    small += [
        f'<span style="color:{colour("#b00020")};font-weight:bold">{line}</span>'
        for text in by_kind.get("alarm", [])
        for line in _wrapped(_plain(text))
    ]
    return lines + [f'<span style="font-size:{_SMALL_PX}px">{line}</span>' for line in small]


def _plain(text: Text) -> str:
    return " ".join(text.get_text().split())


def _wrapped(text: str, width: int = _WRAP) -> list[str]:
    return [escaped(line) for line in textwrap.wrap(text, width)]


def bands(axes: Axes, x: Side, y: Side, names: Names) -> list[dict[str, Any]]:
    """Bands across a panel (`axvspan`, `axhspan`)."""
    along, up = axes.get_xaxis_transform(which="grid"), axes.get_yaxis_transform(which="grid")
    found = []
    for patch in sorted(axes.patches, key=lambda one: float(one.get_zorder())):
        if not isinstance(patch, Rectangle) or not patch.get_visible():
            continue
        across = patch.get_data_transform()
        if across not in (along, up):
            continue
        x0, y0, width, height = patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height()
        upright = across == along
        _, of_legend = names.trace(patch)
        found.append(
            {
                "type": "rect",
                "xref": x.key if upright else f"{x.key} domain",
                "yref": f"{y.key} domain" if upright else y.key,
                # unlike an annotation, a shape has the value itself on a logarithmic axis
                "x0": _at(x, x0, upright),
                "x1": _at(x, x0 + width, upright),
                "y0": _at(y, y0, not upright),
                "y1": _at(y, y0 + height, not upright),
                "fillcolor": colour(patch.get_facecolor()),
                "line": {"width": 0},
                "layer": "below",
                **({key: value for key, value in of_legend.items() if value != ""}),
            }
        )
    return found


def _at(side: Side, value: float, in_data: bool) -> float:
    return float(side.transformed([value])[0]) if in_data else float(value)


def notes(axes: Axes, x: Side, y: Side) -> list[dict[str, Any]]:
    """Texts at places of the data, or of the panel."""
    written = [_note(text, axes, x, y) for text in axes.texts if text.get_visible() and text.get_text().strip()]
    return [*_titles(axes, x, y), *written]


def block(axes: Axes, place: tuple[tuple[float, float], tuple[float, float]]) -> list[dict[str, Any]]:
    """Texts of a panel without axes, such as a small table, at their places in the part `place` of the page.

    They stand by shares of the panel, from which Plotly's letters, which do not shrink with the page, keep their
    distance.
    """
    (left, right), (bottom, top) = place
    found = []
    for text in axes.texts:
        if not text.get_visible() or not text.get_text().strip():
            continue
        x, y = text.get_position()
        words = escaped(text.get_text().strip()).replace("\n", "<br>")
        found.append(
            {
                "text": f"<b>{words}</b>" if text.get_fontweight() == "bold" else words,
                "x": round(left + float(x) * (right - left), 4),
                "y": round(bottom + float(y) * (top - bottom), 4),
                "xref": "paper",
                "yref": "paper",
                "xanchor": _X_ANCHORS.get(text.get_horizontalalignment(), "left"),
                "yanchor": _Y_ANCHORS.get(text.get_verticalalignment(), "bottom"),
                "showarrow": False,
                "font": {"color": colour(text.get_color()), "size": _BLOCK_PX},
            }
        )
    return found


def _titles(axes: Axes, x: Side, y: Side) -> list[dict[str, Any]]:
    """What stands over a panel."""
    places = {"left": (0.0, axes.get_title("left")), "center": (0.5, axes.get_title()),
              "right": (1.0, axes.get_title("right"))}  # fmt: skip
    return [
        {"text": escaped(title).replace("\n", "<br>"), "x": at, "y": 1,
         "xref": f"{x.key} domain", "yref": f"{y.key} domain", "xanchor": where, "yanchor": "bottom",
         "showarrow": False, "font": {"size": _SMALL_PX}}
        for where, (at, title) in places.items()
        if title
    ]  # fmt: skip


def _note(text: Text, axes: Axes, x: Side, y: Side) -> dict[str, Any]:
    anchor = text.xy if isinstance(text, Annotation) else text.get_position()
    x_in_data, y_in_data = _in_data(text, axes)
    turn = text.get_rotation()
    note: dict[str, Any] = {
        "text": escaped(text.get_text().strip()).replace("\n", "<br>"),
        "x": x.place(float(anchor[0])) if x_in_data else float(anchor[0]),
        "y": y.place(float(anchor[1])) if y_in_data else float(anchor[1]),
        "xref": x.key if x_in_data else f"{x.key} domain",
        "yref": y.key if y_in_data else f"{y.key} domain",
        "xanchor": _X_ANCHORS.get(text.get_horizontalalignment(), "left"),
        "yanchor": _Y_ANCHORS.get(text.get_verticalalignment(), "bottom"),
        "showarrow": False,
        "font": {"color": colour(text.get_color()), "size": round(float(text.get_fontsize()) * PX_PER_PT * 0.95)},
    }
    if turn:
        note["textangle"] = -turn
    if isinstance(text, Annotation) and text.anncoords == "offset points":
        note |= {"xshift": float(text.xyann[0]) * PX_PER_PT, "yshift": float(text.xyann[1]) * PX_PER_PT}
    return note


def _in_data(text: Text, axes: Axes) -> tuple[bool, bool]:
    """Whether the place of a text is in the data, along and up; else it is in the panel."""
    if isinstance(text, Annotation):
        coords = text.xycoords
        if isinstance(coords, tuple):
            return coords[0] == "data", coords[1] == "data"
        if coords == "data":
            return True, True
        if isinstance(coords, str):
            return False, False
        given: Any = coords
    else:
        given = text.get_transform()
    along, up = given.contains_branch_seperately(axes.transData)
    return bool(along), bool(up)
