"""Maps: a figure of this family shows a number of each cell of two axes by its colour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

_COLOURS = ListedColormap(matplotlib.colormaps["viridis"](np.linspace(0.88, 0.0, 256)))
"""Dark means many; no colour is too pale for paper."""
_FEW = 100
"""Below this value of the darkest cell, ticks at powers of ten are too few."""


def cells(shape: tuple[int, int], row: Any, column: Any, values: Any) -> np.ndarray:
    """Return a matrix with `values` at their rows and columns; other cells and zeros are NaN."""
    matrix = np.full(shape, np.nan)
    known = np.asarray(values, dtype=float) > 0
    matrix[np.asarray(row)[known], np.asarray(column)[known]] = np.asarray(values, dtype=float)[known]
    return matrix


def draw(axes: Axes, x: np.ndarray, y: np.ndarray, matrix: np.ndarray, norm: LogNorm, name: str = "") -> QuadMesh:
    """Draw a matrix between the edges `x` and `y`; `name` is for a reader who points at a cell.

    It is an image, as thousands of cells as paths would take megabytes.
    """
    mesh = axes.pcolormesh(x, y, np.ma.masked_invalid(matrix), norm=norm, cmap=_COLOURS, rasterized=True, gid="map",
                           label=name or "_map")  # fmt: skip
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(y[0], y[-1])
    axes.grid(visible=False)
    return mesh


def colour_bar(figure: Figure, mesh: QuadMesh, axes: Axes, label: str, text: Callable[[float], str]) -> None:
    """Draw the colour bar of a map into `axes`."""
    bar = figure.colorbar(mesh, cax=axes)
    bar.set_label(f"{label}, log scale")
    low, high = mesh.get_clim()
    if low is not None and high is not None and low >= 1 and high < _FEW:
        bar.ax.yaxis.set_major_locator(FixedLocator([at for at in (1, 2, 3, 5, 10, 20, 50) if at <= high]))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    bar.ax.minorticks_off()
