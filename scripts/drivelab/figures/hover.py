"""A drawn figure as a Plotly chart: the same values, names, axes and looks, with a text for each point.

The picture stays the figure of the report; the chart is what the report shows in its place where scripts run.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox, BboxBase

from drivelab.figures import hover_map, hover_room, hover_texts
from drivelab.figures.hover_axes import Side, domain, side
from drivelab.figures.hover_names import Names
from drivelab.figures.hover_panel import Panel
from drivelab.figures.hover_style import colour, escaped
from drivelab.figures.hover_traces import traces

_PX_PER_IN = 96
_LINE_PX = 18
_NAMES_PER_ROW_PX = 620
_INK = "#222222"
_FONT = {"family": "DejaVu Sans, Verdana, sans-serif", "size": 12, "color": _INK}


def plotly_figure(figure: Figure) -> dict[str, Any]:
    """`data` and `layout` of the chart of a figure, as `plotly.graph_objects.Figure` and plotly.js take them.

    The figure must have been drawn: where its panels lie is known then. Colours of ink and ground are those of
    `figures.style`; a dark page replaces them. Values have five significant digits. Columns in three dimensions
    become a map with the same values.
    """
    names = Names.of(figure)
    # columns in three dimensions have no axes; of what else has none, only what is written there is shown
    blocks = [axes for axes in figure.axes if not axes.axison and axes.name != "3d" and axes.texts]
    shown = [axes for axes in figure.axes if axes.axison or axes.name == "3d" or axes in blocks]
    frame = Bbox.union([axes.get_position() for axes in shown]) if shown else Bbox.unit()
    data: list[dict[str, Any]] = []
    layout: dict[str, Any] = {"shapes": [], "annotations": []}
    keys: dict[int, tuple[str, str]] = {}
    panels = [one for one in shown if one not in blocks and not hasattr(one, "_colorbar") and one.get_visible()]
    for axes in blocks:
        layout["annotations"] += hover_texts.block(axes, domain(axes, frame))
    for number, axes in enumerate(panels, start=1):
        ending = "" if number == 1 else str(number)
        keys[id(axes)] = (f"x{ending}", f"y{ending}")
        if axes.name == "3d":
            data.append(_columns(axes, layout))
            continue
        panel = Panel(axes, *_sides(axes, keys, panels), names)
        layout |= _axes(panel, frame, keys, panels)
        found = traces(panel)
        layout["shapes"] += hover_texts.bands(axes, panel.x, panel.y, names)
        layout["annotations"] += hover_texts.notes(axes, panel.x, panel.y)
        data += found or [_nothing(panel.x.key, panel.y.key)]
        data += _second_axes(panel, frame, layout, len(panels))
    data += names.left()
    return {"data": data, "layout": {**layout, **_page(figure, frame, names, layout)}}


def write(figure: Figure, path: Path, made_from: str | None = None) -> None:
    """Write the chart of a drawn figure as JSON, with `made_from` as the `meta` of its layout if it is given."""
    chart = plotly_figure(figure)
    if made_from is not None:
        chart["layout"]["meta"] = made_from
    text = json.dumps(chart, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    path.write_text(text, encoding="utf-8")


def _sides(axes: Axes, keys: dict[int, tuple[str, str]], panels: list[Axes]) -> tuple[Side, Side]:
    """A panel without a label of its own has that of those whose axis it shares, or that stand in line with it."""
    x_key, y_key = keys[id(axes)]
    x_label = axes.get_xlabel() or _label_of(axes, panels, "x")
    y_label = axes.get_ylabel() or _label_of(axes, panels, "y")
    return side(axes.xaxis, x_key, x_label), side(axes.yaxis, y_key, y_label)


def _label_of(axes: Axes, panels: list[Axes], which: str) -> str:
    shared = [one for one in panels if _share(axes, one, which)]
    labels = [one.get_xlabel() if which == "x" else one.get_ylabel() for one in shared or _in_line(axes, panels, which)]
    return next(filter(None, labels), "")


def _in_line(axes: Axes, panels: list[Axes], which: str) -> list[Axes]:
    """Panels of the same column, or of the same row and the same limits, as a figure labels the outermost alone."""
    place, one_x = axes.get_position(), which == "x"
    ends = place.intervalx if one_x else place.intervaly
    found = []
    for other in panels:
        there = other.get_position().intervalx if one_x else other.get_position().intervaly
        alike = (axes.get_xscale() == other.get_xscale()) if one_x else (
            axes.get_yscale() == other.get_yscale() and axes.get_ylim() == other.get_ylim())  # fmt: skip
        if other is not axes and alike and np.allclose(ends, there, atol=1e-3):
            found.append(other)
    return found


def _share(one: Axes, other: Axes, which: str) -> bool:
    shared = one.get_shared_x_axes() if which == "x" else one.get_shared_y_axes()
    return one is not other and bool(shared.joined(one, other))


def _axes(
    panel: Panel, frame: BboxBase, keys: dict[int, tuple[str, str]], panels: list[Axes]
) -> dict[str, dict[str, Any]]:
    """Layout of the axes of a panel; axes that are shared move together, and twins lie on each other."""
    axes = panel.axes
    along, up = domain(axes, frame)
    of_x: dict[str, Any] = {}
    of_y: dict[str, Any] = {}
    for other in panels[: panels.index(axes)]:
        if _share(axes, other, "x"):
            of_x.setdefault("matches", keys[id(other)][0])
        if _share(axes, other, "y"):
            of_y.setdefault("matches", keys[id(other)][1])
        if domain(other, frame) == (along, up):  # a twin
            of_y |= {"overlaying": keys[id(other)][1], "showgrid": False}
            of_x |= {"overlaying": keys[id(other)][0], "showgrid": False}
    if str(axes.yaxis.get_label_position()) == "right":
        of_y["side"] = "right"
    if str(axes.xaxis.get_label_position()) == "top":
        of_x["side"] = "top"
    return {
        panel.x.layout_key: panel.x.layout(along, panel.y.key, **of_x),
        panel.y.layout_key: panel.y.layout(up, panel.x.key, **of_y),
    }


def _nothing(x_key: str, y_key: str) -> dict[str, Any]:
    """A trace that only makes Plotly draw its axes."""
    return {"type": "scatter", "x": [None], "y": [None], "xaxis": x_key, "yaxis": y_key, "hoverinfo": "skip",
            "showlegend": False}  # fmt: skip


def _second_axes(panel: Panel, frame: BboxBase, layout: dict[str, Any], panels: int) -> list[dict[str, Any]]:
    """Second scales of a panel: another wording of the same axis, which moves with it."""
    found = []
    children: list[Any] = panel.axes.child_axes
    for child in children:
        own = getattr(child, "_orientation", None)
        if own not in ("x", "y"):
            continue
        main = panel.x if own == "x" else panel.y
        key = f"{own}{panels + 1 + sum(name.startswith(f'{own}axis') for name in layout)}"
        second = side(child.xaxis if own == "x" else child.yaxis, key)
        along, up = domain(panel.axes, frame)
        place = along if own == "x" else up
        to_main = child._functions[1]
        other = panel.y.key if own == "x" else panel.x.key
        layout[second.layout_key] = second.layout(place, other) | {
            "range": layout[main.layout_key]["range"],
            "type": layout[main.layout_key]["type"],
            "tickmode": "array",
            "tickvals": [float(f"{to_main(tick):.7g}") for tick in second.ticks],
            "ticktext": list(map(escaped, second.tick_labels)),
            "overlaying": main.key,
            "matches": main.key,
            "side": "top" if own == "x" else "right",
            "showgrid": False,
            "showticklabels": True,
        }
        found.append(_nothing(key, other) if own == "x" else _nothing(other, key))
    return found


def _columns(axes: Any, layout: dict[str, Any]) -> dict[str, Any]:
    layout |= {
        "xaxis": {
            "title": {"text": escaped(axes.get_xlabel()), "font": {"size": 12}},
            "type": "category",
            "automargin": True,
            "showgrid": False,
        },
        "yaxis": {
            "title": {"text": escaped(axes.get_ylabel()), "font": {"size": 12}},
            "type": "category",
            "automargin": True,
            "showgrid": False,
        },
    }
    return hover_map.column_map(axes, side(axes.xaxis, "x"), side(axes.yaxis, "y"), side(axes.zaxis, "z"))


def _page(figure: Figure, frame: BboxBase, names: Names, layout: dict[str, Any]) -> dict[str, Any]:
    """What belongs to the chart as a whole: its height, header, legend and ground."""
    lines = hover_texts.header(figure)
    height_in = float(figure.get_size_inches()[1])
    rows = -(-sum(7 * len(name) + 50 for name in names.entries) // _NAMES_PER_ROW_PX)
    charts_px = frame.height * height_in * _PX_PER_IN
    below_px = 66 + (rows + bool(names.title)) * 20
    on_top = any(key.startswith("xaxis") and one.get("side") == "top" for key, one in layout.items())
    over = any(str(one["yref"]).endswith("domain") and one["y"] >= 1 for one in layout["annotations"])
    above_px = len(lines) * _LINE_PX + 20 + (44 if on_top else 18 if over else 0)
    height_px = round(charts_px + below_px + above_px)
    return {
        "title": {
            "text": "<br>".join(lines),
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "y": 1 - 20 / height_px,
            "yref": "container",
            "yanchor": "top",
            "pad": {"l": 10},
            "font": {"size": 15},
        },
        "height": height_px,
        "autosize": True,
        "margin": {"l": 12, "r": hover_room.right_px(layout), "t": above_px, "b": 8},
        "showlegend": bool(names.entries),
        "legend": {
            "title": {"text": escaped(names.title).replace("\n", " "), "font": {"size": 12}, "side": "top"},
            "orientation": "h",
            "xref": "container",
            "yref": "container",
            "x": 0.01,
            "y": 0.005,
            "xanchor": "left",
            "yanchor": "bottom",
            "traceorder": "normal",
        },
        "barmode": "overlay",
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"family": _FONT["family"]}},
        "font": dict(_FONT),
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "colorway": [colour(_INK)],
    }
