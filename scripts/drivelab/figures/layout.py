"""Where the axes of a figure lie: matplotlib's constrained layout, which measures each tick and each text once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib._constrained_layout
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

constrained: Any = matplotlib._constrained_layout  # without types
_MEASURES = ("_update_ticks", "_get_ticklabel_bboxes")
"""What matplotlib does up to six times an axis for each file and each layout: half of what a figure costs."""
_COPY = "_copy_tick_props"
"""Gives a new tick the looks of the first, which it has from its axis already."""
_MOST_TEXTS = 20_000
_MOST_PASSES = 3


class OnePass(ConstrainedLayoutEngine):
    """The constrained layout with one pass for matplotlib's two, as long as the axes keep their ticks.

    The second is for labels that change when their axes have changed their size. Most axes begin about as large as they
    end; where one has other ticks than it was measured with, such as 2.5k for 2k, there is another pass.
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
        bars = any(hasattr(axes, "_colorbar") for axes in fig.axes)  # each as high as its axes have become
        for place in range(_MOST_PASSES):
            ticks = _ticks(fig)
            with ticks_once(fig):
                constrained.make_layout_margins(grids, fig, renderer, **pads)
            constrained.match_submerged_margins(grids, fig)
            grids[fig].update_variables()
            if constrained.check_no_collapsed_axes(grids, fig):
                constrained.reposition_axes(grids, fig, renderer, **pads)
            if _ticks(fig) == ticks and place >= bars:
                break
        constrained.reset_margins(grids, fig)


def _ticks(figure: Figure) -> list[list[float]]:
    """Of each axis."""
    panels = [one for one in figure.axes if one.name != "3d"]
    return [list(axis.get_majorticklocs()) for panel in panels for axis in (panel.xaxis, panel.yaxis)]


@contextmanager
def ticks_once(figure: Figure) -> Iterator[None]:
    """Ticks are found once while the axes stay as they are, and their labels measured once for each resolution."""
    panels = [one for one in figure.axes if one.name != "3d"]  # those turn their ticks as they draw them
    axes = [axis for panel in panels for one in (panel, *panel.child_axes) for axis in (one.xaxis, one.yaxis)]
    for axis in axes:
        vars(axis).update({name: _remembered(getattr(axis, name), figure) for name in _MEASURES}, **{_COPY: _nothing})
    try:
        yield
    finally:
        for axis in axes:
            for name in (*_MEASURES, _COPY):
                delattr(axis, name)


def _nothing(*_: Any) -> None:
    pass


def _remembered(measure: Callable[..., Any], figure: Figure) -> Callable[..., Any]:
    found: dict[float, Any] = {}

    def remembered(*args: Any, **kwargs: Any) -> Any:
        if figure.dpi not in found:
            found[figure.dpi] = measure(*args, **kwargs)
        return found[figure.dpi]

    return remembered


@contextmanager
def texts_once() -> Iterator[None]:
    """A text is laid out once for all figures of a job: matplotlib does it anew for each file of each figure."""
    measure: Any = Text._get_layout  # type: ignore[attr-defined]
    Text._get_layout = _kept(measure)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        Text._get_layout = measure  # type: ignore[attr-defined]


def _kept(measure: Callable[..., Any]) -> Callable[..., Any]:
    def kept(text: Any, renderer: Any) -> Any:
        looks = text.get_fontproperties()
        key = (
            text.get_figure(root=True).dpi,
            text.get_text(),
            text.get_rotation(),
            text.get_rotation_mode(),
            text.get_horizontalalignment(),
            text.get_verticalalignment(),
            text._get_multialignment(),
            text._linespacing,
        )
        if text.get_wrap():  # that depends on its place
            return measure(text, renderer)
        if (*key, looks) not in _LAYOUTS:
            if len(_LAYOUTS) >= _MOST_TEXTS:
                _LAYOUTS.clear()
            _LAYOUTS[(*key, looks.copy())] = measure(text, renderer)
        return _LAYOUTS[(*key, looks)]

    return kept


_LAYOUTS: dict[tuple[Any, ...], Any] = {}
