"""Canvas that measures texts as in SVG, and draws SVG without measuring a text again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from io import StringIO
from typing import Any, TextIO

from matplotlib.backend_bases import FigureCanvasBase, RendererBase
from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.cbook import open_file_cm
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.textpath import TextToPath

_SVG: Any = RendererSVG  # without types
_MIXED: Any = MixedModeRenderer


class SvgCanvas(FigureCanvasBase):
    """Canvas of all figures for layout and SVG; matplotlib draws other files with its own."""

    def get_renderer(self) -> RendererBase:
        """Return the renderer of the layout, shared by all figures, as matplotlib caches its texts."""
        return _measuring()

    def print_svg(self, file: str | TextIO, *, metadata: Mapping[str, str | None] | None = None, **_: object) -> None:
        """Write the figure to a file as SVG, as matplotlib does."""
        image_dpi, self.figure.dpi = self.figure.dpi, 72
        width, height = self.figure.get_size_inches()
        with open_file_cm(file, "w", encoding="utf-8") as stream:
            drawing = _Renderer(72 * width, 72 * height, stream, image_dpi=image_dpi, metadata=metadata)
            renderer = _MIXED(self.figure, width, height, image_dpi, drawing)
            self.figure.draw(renderer)
            renderer.finalize()


class _Renderer(_SVG):  # type: ignore[misc]
    """Renderer of SVG that measures each text and font once for all figures.

    matplotlib would measure each text again for each file, and read three tables of the font file for each text.
    """

    def get_text_width_height_descent(self, s: str, prop: FontProperties, ismath: Any) -> tuple[float, float, float]:
        """Return the size of a text in points."""
        return _text_size(s, prop.copy(), ismath)

    def _get_font_height_metrics(self, prop: FontProperties) -> tuple[float, float, float]:
        """Return ascent, descent and gap of a font's lines in points; `Text._get_layout` asks for them."""
        units, *heights = _line_heights(prop.copy())
        scale = 1 / units * prop.get_size_in_points()
        ascent, descent, gap = (scale * height for height in heights)
        return ascent, -descent, gap


@cache
def _measuring() -> RendererBase:
    renderer: RendererBase = _Renderer(1, 1, StringIO())
    return renderer


@cache
def _text_size(text: str, font: FontProperties, ismath: Any) -> tuple[float, float, float]:
    size: tuple[float, float, float] = TextToPath().get_text_width_height_descent(text, font, ismath)
    return size


@cache
def _line_heights(font: FontProperties) -> tuple[int, int, int, int]:
    """Return units per em, ascender, descender and line gap from the font file, which all fonts of figures have."""
    file = get_font(findfont(font))
    head, heights = file.get_sfnt_table("head"), file.get_sfnt_table("OS/2")
    assert head is not None
    assert heights is not None
    return (head["unitsPerEm"], heights["sTypoAscender"], heights["sTypoDescender"], heights["sTypoLineGap"])
