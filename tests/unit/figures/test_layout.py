"""The layout in as few passes as will do, ticks and texts measured once: the same picture as without."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import comparison_frames
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.text import Text

from drivelab.figures import style
from drivelab.figures.layout import texts_once, ticks_once
from drivelab.figures.rendering import render
from drivelab.figures.telemetry_strip import telemetry_strip

FIGURES = ("convergence", "measurement_2d", "window", "saturation_bytes")
_TOLERANCE = 0.001
"""Of the width or height of a figure."""


def _figure(made: ModuleType, name: str) -> Figure:
    soak = name.startswith("saturation")
    tables = {
        "cells": made.soak() if soak else made.cells(),
        "steady_state": made.steady_state(),
        "drives": made.drives(op7=1 << 26),
    }
    return render(name, tables, "op7")


@style.styled
def _lay_out(figure: Figure) -> None:
    """As when it is saved: the axes look for ticks, which have the style's size."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_one_pass_places_the_axes_where_two_do(made: ModuleType, name: str) -> None:
    once, twice = _figure(made, name), _figure(made, name)
    given = once.get_layout_engine()
    assert given is not None
    twice.set_layout_engine(ConstrainedLayoutEngine(**given.get()))
    _lay_out(once)
    _lay_out(twice)
    for one, other in zip(once.axes, twice.axes, strict=True):
        assert one.get_position().bounds == pytest.approx(other.get_position().bounds, abs=_TOLERANCE)


def test_axes_that_grow_have_room_for_their_new_ticks() -> None:
    """The last panel has ticks such as 2.5 in the end, with wider labels than those it was measured with."""
    figure = telemetry_strip(**comparison_frames.heated(300))
    _lay_out(figure)
    figure.set_layout_engine(None)
    FigureCanvasAgg(figure).draw()
    assert "2.5" in [tick.get_text() for tick in figure.axes[-1].get_yticklabels()]
    assert min(panel.yaxis.label.get_window_extent().x0 for panel in figure.axes) >= 0


def test_ticks_found_once_are_those_that_are_drawn(made: ModuleType) -> None:
    with_memory, without = _figure(made, "convergence"), _figure(made, "convergence")
    pictures = []
    for figure in (with_memory, without):
        _lay_out(figure)
        figure.set_layout_engine(None)
    with ticks_once(with_memory):
        canvas = FigureCanvasAgg(with_memory)
        canvas.draw()
        canvas.draw()
        pictures.append(np.asarray(canvas.buffer_rgba()))
    canvas = FigureCanvasAgg(without)
    canvas.draw()
    pictures.append(np.asarray(canvas.buffer_rgba()))
    assert np.array_equal(*pictures)
    assert "_update_ticks" not in vars(with_memory.axes[0].xaxis), "nothing is kept that would be wrong later"


def test_matplotlib_is_left_as_it_was() -> None:
    given = Text._get_layout  # type: ignore[attr-defined]  # private: this fails where matplotlib has it no more
    with texts_once():
        assert Text._get_layout is not given  # type: ignore[attr-defined]
    assert Text._get_layout is given  # type: ignore[attr-defined]


def test_a_text_laid_out_before_lies_where_matplotlib_lays_it() -> None:
    figure = Figure()
    looks: list[dict[str, Any]] = [
        {}, {"rotation": 30}, {"rotation": 30, "rotation_mode": "anchor"}, {"ha": "right"}, {"va": "top"},
        {"fontsize": 17}, {"weight": "bold"}, {"multialignment": "right"}, {"linespacing": 2.0}, {"wrap": True},
    ]  # fmt: skip
    texts = [figure.text(x, x, "two\nlines of " + 40 * "x", **look) for look in looks for x in (0.2, 0.6)]
    without = [text.get_window_extent().bounds for text in texts]
    with texts_once():
        for _ in range(2):
            assert [text.get_window_extent().bounds for text in texts] == without


def test_png_only_where_it_is_wanted(made: ModuleType, tmp_path: Path) -> None:
    assert style.save(_figure(made, "window"), tmp_path / "one", png=False) == [tmp_path / "one.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.json", "one.svg"]
