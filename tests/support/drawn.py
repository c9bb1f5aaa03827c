"""What a figure shows: its lines, texts and legend, by the mark (gid) of its artists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text


def artists(figure: Figure, gid: str, panel: int | None = None) -> list[Any]:
    """Return the artists with a `gid` in one of the axes, or in all."""
    places = figure.axes if panel is None else [figure.axes[panel]]
    return [artist for axes in places for artist in axes.findobj(lambda one: one.get_gid() == gid)]


def points(figure: Figure, gid: str, panel: int | None = None) -> list[np.ndarray]:
    """Return the points of the lines with a `gid`, in the units of the axes."""
    return [line.get_xydata() for line in artists(figure, gid, panel)]


def texts(figure: Figure, gid: str) -> list[str]:
    """Return the texts with a `gid`, in panels and in the header."""
    result = [*artists(figure, gid), *(text for text in figure.texts if text.get_gid() == gid)]
    return [text.get_text().replace("\n", " ") for text in result]


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def rows(figure: Figure) -> list[str]:
    """Return the names of the rows of the first panel."""
    return [tick.get_text() for tick in figure.axes[0].get_yticklabels()]


def stays_on_its_page(figure: Figure, shown: Sequence[Axes]) -> list[Text]:
    """Check that texts, legends and labels of the `shown` axes lie within the page; return the labels."""
    labels = [axis.label for axes in shown for axis in (axes.xaxis, axes.yaxis) if axis.label.get_text()]
    for artist in (*figure.texts, *figure.legends, *labels):
        box, page = artist.get_window_extent(), figure.bbox
        assert box.x0 >= page.x0 - 1, artist
        assert box.y0 >= page.y0 - 1, artist
        assert box.x1 <= page.x1 + 1, artist
        assert box.y1 <= page.y1 + 1, artist
    return labels
