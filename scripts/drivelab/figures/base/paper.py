"""Figures for papers: as wide as a column, with the font size of the paper, and embedded fonts.

A figure is drawn larger and then made smaller as a whole, so that all of its texts get the size of the paper and keep
their proportions to lines, ticks and marks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends import backend_pdf
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.figure import Figure

from drivelab.figures.base import style

PNG_DPI = 600
_SLACK_PX = 1.5
_LEAST_PANEL = 0.4
"""Smallest share of the figure's width that its panels must have."""


@dataclass(frozen=True)
class Paper:
    """The columns of a paper, and the size of its texts."""

    widths_in: tuple[float, ...]
    """Widths of one column and of two columns."""
    text_pt: float
    titled: bool

    @property
    def scale(self) -> float:
        """Return the size of a printed figure as a share of the drawn one."""
        return self.text_pt / style.TEXT_PT


PAPERS = {
    "ieee": Paper((3.5, 7.16), 8.0, titled=False),  # IEEE Author Center, "Resolution and size": 3.5 and 7.16 inches
    "report": Paper((style.WIDTH_IN,), style.TEXT_PT, titled=True),
}


@contextmanager
def drawn_for(paper: Paper, column: int = 0) -> Iterator[None]:
    """Make new figures as wide as a column of a paper, before they are made smaller."""
    token = style.page.set(style.Page(paper.widths_in[column] / paper.scale, paper.titled))
    try:
        yield
    finally:
        style.page.reset(token)


@style.styled
def fitting(draw: Callable[[], Figure], paper: Paper) -> tuple[Figure, float]:
    """Return a figure for the narrowest column in which no text is cut or overlaps, and its printed width in inches."""
    last = len(paper.widths_in) - 1
    for column in range(last + 1):
        with drawn_for(paper, column):
            figure = draw()
            style.settle(figure)
        if column == last or not _is_crowded(figure):
            break
    return figure, paper.widths_in[column]


@style.styled
def save(figure: Figure, path: Path, paper: Paper) -> None:
    """Write a figure in the format of the path's ending, in the size of the paper; equal figures give equal bytes.

    PDF files embed TrueType fonts (Type 42), as IEEE PDF eXpress requires.
    """
    if path.suffix == ".pdf":
        style.settle(figure)
        _save_pdf(figure, path, paper.scale)
    elif path.suffix == ".png":
        style.settle(figure)
        figure.savefig(path, format="png", dpi=PNG_DPI * paper.scale, pil_kwargs={"dpi": (PNG_DPI, PNG_DPI)})
    else:
        width, height = (72 * paper.scale * side for side in figure.get_size_inches())
        head, tag, rest = style.svg(figure).partition("<svg ")
        attributes, end, body = rest.partition(">")
        sized = " ".join(part for part in attributes.split(" ") if not part.startswith(("width=", "height=")))
        path.write_text(f'{head}{tag}width="{width:.3f}pt" height="{height:.3f}pt" {sized}{end}{body}', "utf-8")


def _save_pdf(figure: Figure, path: Path, scale: float) -> None:
    """Write a page that is smaller than its drawing; matplotlib's own canvas cannot."""
    width, height = figure.get_size_inches()
    pdf: Any = backend_pdf  # without types
    with matplotlib.rc_context({"pdf.fonttype": 42}):
        file = pdf.PdfFile(str(path), metadata={"CreationDate": None, "Creator": "drivelab", "Producer": "matplotlib"})
        try:
            file.newPage(width * scale, height * scale)
            file.width, file.height = width, height  # paths are cut there
            file.output(scale, 0, 0, scale, 0, 0, pdf.Op.concat_matrix)
            mixed: Any = MixedModeRenderer
            renderer = mixed(figure, width, height, 72, pdf.RendererPdf(file, 72, height, width))
            figure.draw(renderer)
            renderer.finalize()
            file.finalize()
        finally:
            file.close()


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
