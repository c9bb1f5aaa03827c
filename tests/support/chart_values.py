"""The values that a chart of the report shows, in the words of the page's script (`charts.js`)."""

from __future__ import annotations

import json
from typing import Any

from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.quantities import grouped
from drivelab.figures.base.values import marked

Mark = dict[str, Any]


def chart(figure: Figure) -> dict[str, Any]:
    """The values of a figure as the page reads them from its SVG."""
    with style.matplotlib.rc_context(style.RC):
        figure.draw_without_rendering()
        with marked(figure) as values:
            result: dict[str, Any] = json.loads(json.dumps(values, allow_nan=False))
    return result


def marks(figure: Figure) -> list[Mark]:
    """All marks of a figure, each with its panel and the number of that."""
    return [{"name": "", **mark, "panel": panel, "place": place}
            for place, panel in enumerate(chart(figure)["panels"]) for mark in panel["marks"]]  # fmt: skip


def tooltips(mark: Mark) -> list[list[str]]:
    """The lines that each point of a mark tells; none of a silent one."""
    if "x" not in mark:
        return [[*str(one).split("\n")] for one in mark.get("also", [])]
    if "z" in mark:
        wide = len(mark["x"]) - 1
        return [[*_lines(mark, place % wide, place // wide), _cell(mark, value)]
                for place, value in enumerate(mark["z"]) if value is not None]  # fmt: skip
    also = mark.get("also", "")
    return [
        [*_lines(mark, point, point), *([text] if (text := also if isinstance(also, str) else also[point]) else [])]
        for point, (x, y) in enumerate(zip(mark["x"], mark["y"], strict=True))
        if x is not None and y is not None
    ]


def _lines(mark: Mark, along: int, up: int) -> list[str]:
    result = [mark["name"]] if mark["name"] else []
    for which, place in (("x", along), ("y", up)):
        words, axis = mark.get(f"{which}w", ""), mark["panel"][which]
        if words is None:
            continue
        value = words[place] if words else f"{grouped(mark[which][place])} {axis['unit']}".rstrip()
        result.append(f"{axis['name']}: {value}" if axis["name"] else value)
    return result


def _cell(mark: Mark, value: float) -> str:
    return f"{mark['z_name']}: {grouped(value)} {mark['z_unit']}".rstrip()
