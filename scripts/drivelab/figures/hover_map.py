"""Maps of values by colour: meshes, images, and columns in three dimensions, which are a map of the same values."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from mpl_toolkits.mplot3d.art3d import Poly3DCollection

from drivelab.figures.hover_axes import Side
from drivelab.figures.hover_numbers import Floats, floats, listed, placed
from drivelab.figures.hover_style import colour, escaped
from drivelab.figures.hover_words import parts

_SHADES = 17
_DIGITS_OF_A_MAP = 4
_COLUMN_SHADES = "Viridis"


def heat_map(mesh: Any, x_edges: Floats, y_edges: Floats, x: Side, y: Side, name: str) -> dict[str, Any]:
    """A mesh of colours by value; the bar of its colours has the label of matplotlib's.

    Meshes of one norm have one bar, beside one of them.
    """
    values = floats(mesh.get_array()).reshape(len(y_edges) - 1, len(x_edges) - 1)
    norm, bar = mesh.norm, getattr(mesh, "colorbar", None)
    is_log = isinstance(norm, LogNorm)
    with np.errstate(divide="ignore", invalid="ignore"):
        shown, ends = (np.log10(values), np.log10([norm.vmin, norm.vmax])) if is_log else (
            values, np.asarray([norm.vmin, norm.vmax], dtype=float))  # fmt: skip
    common = bar or _bar_of(mesh)
    label = common.ax.get_ylabel() or common.ax.get_xlabel() if common is not None else ""
    what, unit = parts(label)
    trace: dict[str, Any] = {
        "type": "heatmap",
        "x": placed(x.transformed(x_edges)),
        "y": placed(y.transformed(y_edges)),
        "z": [listed(row, _DIGITS_OF_A_MAP) for row in shown],
        "zmin": float(ends[0]),
        "zmax": float(ends[1]),
        "xaxis": x.key,
        "yaxis": y.key,
        "colorscale": [[round(place, 4), colour(mesh.cmap(place))] for place in np.linspace(0, 1, _SHADES).tolist()],
        "showscale": bar is not None,
        "hoverongaps": False,
    }
    value = "z"
    if is_log:
        trace["customdata"], value = [listed(row, _DIGITS_OF_A_MAP) for row in values], "customdata"
    lines = [f"<b>{name}</b>"] if name else []
    lines += [x.line("x", worded=False), y.line("y", worded=False)]
    lines.append(f"{escaped(what)}: %{{{value}:,.4~r}}{f' {escaped(unit)}' if unit else ''}")
    trace["hovertemplate"] = "<br>".join(lines) + "<extra></extra>"
    if bar is not None:
        trace["colorbar"] = _colour_bar(bar, label, is_log)
    return trace


def _bar_of(mesh: Any) -> Any:
    """The bar of the colours of a mesh that has none of its own: that of another one with the same norm."""
    bars = [one._colorbar for one in mesh.figure.axes if hasattr(one, "_colorbar")]
    return next((bar for bar in bars if bar.mappable.norm is mesh.norm), None)


def _colour_bar(bar: Any, label: str, is_log: bool) -> dict[str, Any]:
    ticks = [tick for tick in floats(bar.get_ticks()).tolist() if bar.vmin <= tick <= bar.vmax]
    texts = bar.ax.yaxis.get_major_formatter().format_ticks(ticks)
    plain = not any("$" in text for text in texts)
    return {
        "title": {"text": escaped(label), "side": "right", "font": {"size": 12}},
        "thickness": 14,
        "outlinewidth": 0,
        "tickmode": "array",
        "tickvals": [float(np.log10(tick)) if is_log else tick for tick in ticks],
        "ticktext": [escaped(text) for text in texts] if plain else [f"{tick:,.4g}" for tick in ticks],
    }


def columns(axes: Axes) -> list[Poly3DCollection]:
    """Columns of axes in three dimensions, as `bar3d` makes them."""
    return [one for one in axes.collections if isinstance(one, Poly3DCollection)]


def column(artist: Poly3DCollection) -> tuple[float, float, float]:
    """Middle of a column's ground, and its height."""
    corners = np.asarray(artist._faces, dtype=float).reshape(-1, 3)  # the one place where matplotlib keeps them
    low, high = corners.min(axis=0), corners.max(axis=0)
    return float((low[0] + high[0]) / 2), float((low[1] + high[1]) / 2), float(high[2] if high[2] > 0 else low[2])


def column_map(axes: Any, x: Side, y: Side, z: Side) -> dict[str, Any]:
    """The columns of a figure in three dimensions as a map, with the value in each field."""
    found = [column(one) for one in columns(axes)]
    along, up = sorted({round(x_at, 6) for x_at, _, _ in found}), sorted({round(y_at, 6) for _, y_at, _ in found})
    values = np.full((len(up), len(along)), np.nan)
    for x_at, y_at, height in found:
        values[up.index(round(y_at, 6)), along.index(round(x_at, 6))] = height
    names_x, names_y = ([escaped(one.category(at)) for at in places] for one, places in ((x, along), (y, up)))
    numbers = [["" if value is None else f"{value:,}" for value in listed(row)] for row in values]
    unit = f" {escaped(z.unit)}" if z.unit else ""
    return {
        "type": "heatmap",
        "x": names_x,
        "y": names_y,
        "z": [listed(row) for row in values],
        "text": [["" if value is None else f"{value:,}" for value in listed(row, _DIGITS_OF_A_MAP)] for row in values],
        "texttemplate": "%{text}",
        "customdata": numbers,
        "colorscale": _COLUMN_SHADES,
        "xgap": 1,
        "ygap": 1,
        "hoverongaps": False,
        "colorbar": {
            "title": {"text": escaped(z.label), "side": "right", "font": {"size": 12}},
            "thickness": 14,
            "outlinewidth": 0,
        },
        "hovertemplate": f"{escaped(x.name)}: %{{x}}{x.suffix}<br>{escaped(y.name)}: %{{y}}{y.suffix}<br>"
        f"{escaped(z.name)}: %{{customdata}}{unit}<extra></extra>",
    }
