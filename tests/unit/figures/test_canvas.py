"""The canvas of figures writes the same SVG as matplotlib's own."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from drivelab.figures.base.style import new_figure, settle, styled


@styled
def drawn(**options: Any) -> tuple[bytes, bytes]:
    """Return the SVG of a figure by its own canvas, and by matplotlib's."""
    figure = figure_with_texts_and_image()
    own, other = BytesIO(), BytesIO()
    figure.savefig(own, format="svg", metadata={"Date": None}, **options)
    FigureCanvasSVG(figure)
    figure.savefig(other, format="svg", metadata={"Date": None}, **options)
    return own.getvalue(), other.getvalue()


def figure_with_texts_and_image() -> Figure:
    figure = new_figure("A title")
    axes = figure.subplots()
    axes.pcolormesh(np.arange(12.0).reshape(3, 4), rasterized=True)
    axes.set_xlabel("two\nlines, $x^2$", weight="bold")
    settle(figure)
    return figure


@pytest.mark.parametrize("options", [{}, {"bbox_inches": "tight"}, {"dpi": 150}])
def test_svg_is_that_of_matplotlib(options: dict[str, Any]) -> None:
    own, other = drawn(**options)
    assert len(own) > 5000
    assert own == other


@styled
def test_figure_is_saved_to_a_path_and_keeps_its_resolution(tmp_path: Path) -> None:
    figure = figure_with_texts_and_image()
    figure.savefig(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().endswith("</svg>\n")
    assert figure.dpi == 72
