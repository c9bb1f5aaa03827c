"""Layout of a figure: panels in a grid, as large as the texts around them allow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.layout_engine import LayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox

BESIDE, BELOW = "beside", "below"
"""Marks (gid) of a legend: at the right of all panels, or below them."""
_PAD_IN = 0.07
"""Padding around each panel with its texts."""
_MOST_PASSES = 3

_Margins = tuple[float, float, float, float]
"""Space that the texts of a panel need outside of it: left, bottom, right, top, in pixels."""


class PageLayout(LayoutEngine):
    """Places the panels of one grid below the header, beside or above the legends.

    matplotlib's engines measure each panel two to four times, which takes half of the drawing time. This engine
    measures each panel once, and again only if its ticks changed with its size, such as 2.5k for 2k.
    """

    def __init__(self) -> None:
        super().__init__()
        self._top = 1.0

    @property
    def adjust_compatible(self) -> bool:
        """False: the next layout would undo `Figure.subplots_adjust`."""
        return False

    @property
    def colorbar_gridspec(self) -> bool:
        """True: a colour bar is a column of the figure's grid."""
        return True

    def set(self, *, top: float = 1.0) -> None:
        """Set the top of the panels' area, as a share of the page."""
        self._top = top

    def execute(self, fig: Figure) -> None:
        """Place all panels, or leave them unchanged if the page has no room for them."""
        panels = [(axes, spec) for axes in fig.axes if (spec := axes.get_subplotspec()) is not None]
        if not panels:
            return
        renderer = _measuring(fig)
        room = _room(fig, self._top, renderer)
        for _ in range(_MOST_PASSES):
            ticks = _ticks(fig)
            if not _place(panels, room, _PAD_IN * fig.dpi, renderer) or _ticks(fig) == ticks:
                break


def _measuring(figure: Figure) -> RendererBase:
    """Return what measures texts; the canvases of PDF and SVG files, which users write, have none."""
    canvas: Any = figure.canvas
    if not hasattr(canvas, "get_renderer"):
        measuring = FigureCanvasAgg(figure)
        figure.set_canvas(canvas)
        canvas = measuring
    renderer: RendererBase = canvas.get_renderer()
    return renderer


def _room(figure: Figure, top: float, renderer: RendererBase) -> Bbox:
    """Return the area without header and legends, in pixels."""
    width, height = figure.bbox.width, figure.bbox.height
    boxes = {legend: legend.get_window_extent(renderer) for legend in figure.legends}
    below = max((box.y1 for legend, box in boxes.items() if legend.get_gid() == BELOW), default=0.0)
    right = min((box.x0 for legend, box in boxes.items() if legend.get_gid() == BESIDE), default=width)
    return Bbox.from_extents(0.0, below, right, height * top)


def _place(panels: Sequence[tuple[Axes, SubplotSpec]], room: Bbox, pad: float, renderer: RendererBase) -> bool:
    """Measure the panels and place them; return whether there was room."""
    margins = {axes: _margins(axes, renderer) for axes, _ in panels}
    grid: Any = panels[0][1].get_gridspec()
    columns = _ends(
        [(spec.colspan, margins[axes][0], margins[axes][2]) for axes, spec in panels],
        list(grid.get_width_ratios()), room.x0, room.x1, pad)  # fmt: skip
    rows = _ends(
        [(spec.rowspan, margins[axes][3], margins[axes][1]) for axes, spec in panels],
        list(grid.get_height_ratios()), room.y1, room.y0, pad)  # fmt: skip
    if not columns or not rows:
        return False
    for axes, spec in panels:
        x0, x1 = columns[spec.colspan.start][0], columns[spec.colspan.stop - 1][1]
        y1, y0 = rows[spec.rowspan.start][0], rows[spec.rowspan.stop - 1][1]
        page = axes.figure.bbox
        axes.set_position((x0 / page.width, y0 / page.height, (x1 - x0) / page.width, (y1 - y0) / page.height))
    return True


def _margins(axes: Axes, renderer: RendererBase) -> _Margins:
    """Return the space that tick labels, labels, titles and texts of a panel need outside of it.

    `Axes.get_tightbbox` returns the same, but measures each tick label three times.
    """
    panel = axes.bbox
    if axes.name == "3d":
        return 0.0, 0.0, 0.0, 0.0
    written = [child for child in axes.get_children() if isinstance(child, Text | Legend) and child.get_in_layout()]
    boxes = [child.get_tightbbox(renderer) for child in written if child.get_visible()]
    boxes += [child.get_tightbbox(renderer, for_layout_only=True) for child in axes.child_axes]
    left, bottom, right, top = 0.0, 0.0, 0.0, 0.0
    for axis in (axes.xaxis, axes.yaxis) if axes.axison else ():
        ticks = _tick_labels(axis, renderer)
        boxes += ticks
        label = axis.label.get_window_extent(renderer) if axis.label.get_text() else None
        if label is None:
            continue
        place, pad = str(axis.get_label_position()), axis.labelpad * axes.figure.dpi / 72
        around = Bbox.union([panel, *ticks])
        left = max(left, panel.x0 - around.x0 + pad + label.width) if place == "left" else left
        right = max(right, around.x1 - panel.x1 + pad + label.width) if place == "right" else right
        bottom = max(bottom, panel.y0 - around.y0 + pad + label.height) if place == "bottom" else bottom
        top = max(top, around.y1 - panel.y1 + pad + label.height) if place == "top" else top
    box = Bbox.union(
        [panel, *(extent for extent in boxes if extent is not None and (extent.width > 0 or extent.height > 0))]
    )
    return (max(panel.x0 - box.x0, left), max(panel.y0 - box.y0, bottom),
            max(box.x1 - panel.x1, right), max(box.y1 - panel.y1, top))  # fmt: skip


def _tick_labels(axis: Axis, renderer: RendererBase) -> list[Bbox]:
    low, high = sorted(axis.get_view_interval())
    room = 1e-9 * (high - low)
    axis.get_majorticklabels()  # brings the ticks up to date
    shown = [tick for tick in axis.get_major_ticks() if low - room <= tick.get_loc() <= high + room]
    labels = [label for tick in shown for label in (tick.label1, tick.label2)]
    return [label.get_window_extent(renderer) for label in labels if label.get_visible() and label.get_text()]


def _ends(
    margins: Sequence[tuple[range, float, float]], ratios: Sequence[float], start: float, stop: float, pad: float
) -> list[tuple[float, float]]:
    """Return begin and end of each column between `start` and `stop`, or of each row, if stop is lower.

    `margins` has the columns of each panel and the space needed before and after. Returns an empty list without room.
    """
    before, after = [0.0] * len(ratios), [0.0] * len(ratios)
    for span, first, last in margins:
        before[span.start] = max(before[span.start], first)
        after[span.stop - 1] = max(after[span.stop - 1], last)
    left = abs(stop - start) - sum(before) - sum(after) - 2 * pad * len(ratios)
    if left <= 0:
        return []
    sign = 1.0 if stop > start else -1.0
    ends, at = [], start
    for ratio, first, last in zip(ratios, before, after, strict=True):
        begin = at + sign * (pad + first)
        end = begin + sign * left * ratio / sum(ratios)
        ends.append((begin, end))
        at = end + sign * (last + pad)
    return ends


def _ticks(figure: Figure) -> list[list[float]]:
    """Return the ticks of each axis."""
    return [list(axis.get_majorticklocs()) for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
