"""Figures for papers: as wide as a column, without a title, with embedded fonts.

A figure is drawn larger than its column. Made as wide as the column as a whole, all of its texts have the size of the
paper and keep their proportions to lines, ticks and marks.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from drivelab.figures.base import style

WIDTHS_IN = (3.5, 7.16)
"""Widths of one column and of two columns (IEEE Author Center, "Resolution and size")."""
_SCALE = 8.0 / style.TEXT_PT
"""Size in print as a share of the drawn size, for texts of 8 pt."""
_PNG_DPI = 600
_METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}
"""By format; without dates, equal figures give equal files."""
_SLACK_PX = 1.5
_LEAST_PANEL = 0.4
"""Smallest share of the figure's width that its panels must have."""


@style.styled
def fitting(draw: Callable[[], Figure]) -> tuple[Figure, float]:
    """Return a figure for the narrowest column in which no text is cut or overlaps, and the column's width in inches.

    The figure is wider: its texts have 8 pt if it is made as wide as the column.
    """
    for width_in in WIDTHS_IN:
        with style.on_page(width_in / _SCALE, titled=False):
            figure = draw()
            style.settle(figure)
        if not _is_crowded(figure):
            break
    return figure, width_in


@style.styled
def save(figure: Figure, path: Path) -> None:
    """Write a figure in the format of the path's ending: pdf with TrueType fonts, which IEEE requires, svg or png."""
    form = path.suffix[1:]
    options: dict[str, Any] = {"format": form, "metadata": _METADATA[form]}
    if form == "png":
        options |= {"dpi": _PNG_DPI * _SCALE, "pil_kwargs": {"dpi": (_PNG_DPI, _PNG_DPI)}}
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        figure.savefig(path, **options)


def _is_crowded(figure: Figure) -> bool:
    """Return whether a text is cut by the edge of the figure, tick labels overlap, or texts leave no room to panels."""
    canvas: Any = figure.canvas
    renderer = canvas.get_renderer()
    width = figure.bbox.width
    texts = list(figure.texts)
    panels = [axes.bbox for axes in figure.axes if axes.get_subplotspec() is not None]
    if panels and sum({round(box.x0): box.width for box in panels}.values()) < _LEAST_PANEL * width:
        return True
    for axes in figure.axes:
        texts += [axes.xaxis.label, *axes.texts, *axes.get_yticklabels()]
        if _ticks_overlap(axes, renderer):
            return True
    boxes = [text.get_window_extent(renderer) for text in texts if text.get_visible() and text.get_text()]
    boxes += [legend.get_window_extent(renderer) for legend in figure.legends]
    return any(box.x0 < -_SLACK_PX or box.x1 > width + _SLACK_PX for box in boxes)


def _ticks_overlap(axes: Axes, renderer: Any) -> bool:
    boxes = [text.get_window_extent(renderer) for text in axes.get_xticklabels() if text.get_text()]
    left, right = axes.bbox.x0 - _SLACK_PX, axes.bbox.x1 + _SLACK_PX
    shown = sorted((box for box in boxes if left <= (box.x0 + box.x1) / 2 <= right), key=lambda box: box.x0)
    return any(one.x1 > other.x0 and one.overlaps(other) for one, other in pairwise(shown))
