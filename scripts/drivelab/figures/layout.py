"""Where the axes of a figure lie: matplotlib's constrained layout, which measures each tick and each text once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib._constrained_layout
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.backends.backend_svg import RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine

constrained: Any = matplotlib._constrained_layout  # without types
_MEASURES = ("_update_ticks", "_get_ticklabel_bboxes")
"""What matplotlib does up to six times an axis for each file and each layout: half of what a figure costs."""
_MOST_TEXTS = 20_000
Extent = tuple[float, float, float]


class OnePass(ConstrainedLayoutEngine):
    """The constrained layout with one pass for matplotlib's two.

    The second is for labels that change when their axes have moved. Ours do not: the axes begin about as large as they
    end, and the room that a tick label needs beside the axes is not a matter of how many of them there are.
    """

    def execute(self, fig: Figure) -> None:
        """Place all axes of `fig`; leaves them where they are in a figure that has no room for them."""
        width, height = fig.get_size_inches()
        params: dict[str, Any] = self.get()
        pads = {
            "h_pad": params["h_pad"] / height,
            "w_pad": params["w_pad"] / width,
            "hspace": params["hspace"],
            "wspace": params["wspace"],
        }
        renderer = fig._get_renderer()  # type: ignore[attr-defined]
        grids = constrained.make_layoutgrids(fig, None, rect=params["rect"])
        if not grids["hasgrids"]:
            return
        # a colour bar is as high as its axes have become, and so has other ticks than before
        for _ in range(2 if any(hasattr(axes, "_colorbar") for axes in fig.axes) else 1):
            with ticks_once(fig):
                constrained.make_layout_margins(grids, fig, renderer, **pads)
            constrained.match_submerged_margins(grids, fig)
            grids[fig].update_variables()
            if constrained.check_no_collapsed_axes(grids, fig):
                constrained.reposition_axes(grids, fig, renderer, **pads)
        constrained.reset_margins(grids, fig)


@contextmanager
def ticks_once(figure: Figure) -> Iterator[None]:
    """Ticks are found once while the axes stay as they are, and their labels measured once for each resolution."""
    panels = [one for one in figure.axes if one.name != "3d"]  # those turn their ticks as they draw them
    axes = [axis for panel in panels for one in (panel, *panel.child_axes) for axis in (one.xaxis, one.yaxis)]
    for axis in axes:
        for name in _MEASURES:
            setattr(axis, name, _remembered(getattr(axis, name), figure))
    try:
        yield
    finally:
        for axis in axes:
            for name in _MEASURES:
                delattr(axis, name)


def _remembered(measure: Callable[..., Any], figure: Figure) -> Callable[..., Any]:
    found: dict[float, Any] = {}

    def remembered(*args: Any, **kwargs: Any) -> Any:
        if figure.dpi not in found:
            found[figure.dpi] = measure(*args, **kwargs)
        return found[figure.dpi]

    return remembered


@contextmanager
def texts_once() -> Iterator[None]:
    """A text is measured once for all figures of a job: matplotlib does it anew for each file of each figure."""
    classes = (RendererAgg, RendererSVG)
    given = {one: one.get_text_width_height_descent for one in classes}
    for one in classes:
        one.get_text_width_height_descent = _kept(one, given[one])  # type: ignore[method-assign]
    try:
        yield
    finally:
        for one in classes:
            one.get_text_width_height_descent = given[one]  # type: ignore[method-assign]


def _kept(of: type, measure: Callable[..., Extent]) -> Callable[..., Extent]:
    def kept(renderer: Any, s: str, prop: FontProperties, ismath: bool) -> Extent:
        key = (of, getattr(renderer, "dpi", None), s, prop, ismath)  # SVG is measured in points whatever it is
        if key not in _EXTENTS:
            if len(_EXTENTS) >= _MOST_TEXTS:
                _EXTENTS.clear()
            _EXTENTS[(*key[:3], prop.copy(), ismath)] = measure(renderer, s, prop, ismath)
        return _EXTENTS[key]

    return kept


_EXTENTS: dict[tuple[Any, ...], Extent] = {}
