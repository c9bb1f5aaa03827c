"""Panels have room for their texts and fill the rest of the page."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import comparison_frames
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from drivelab.figures.base import style
from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.soak.telemetry_strip import telemetry_strip

FIGURES = ("convergence", "measurement_2d", "window", "saturation_bytes")
_TOLERANCE = 0.25
"""Share of the width or height of a figure."""


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
    """Lay out a figure as for saving: ticks are found under the style."""
    engine = figure.get_layout_engine()
    assert engine is not None
    engine.execute(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_texts_neither_leave_the_page_nor_meet_and_panels_are_about_as_large_as_with_matplotlibs_layout(
    made: ModuleType, name: str
) -> None:
    figure, theirs = _figure(made, name), _figure(made, name)
    theirs.set_layout_engine("tight")
    _lay_out(figure)
    _lay_out(theirs)
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    page = figure.bbox
    for place, box in enumerate(boxes):
        assert box is not None
        assert box.x0 >= page.x0 - 1
        assert box.x1 <= page.x1 + 1
        assert box.y0 >= page.y0 - 1
        assert not any(other is not None and box.overlaps(other) for other in boxes[place + 1 :])
    for one, other in zip(figure.axes, theirs.axes, strict=True):
        assert one.get_position().width == pytest.approx(other.get_position().width, abs=_TOLERANCE)


def test_axes_that_grow_have_room_for_their_new_ticks() -> None:
    """The last panel gets ticks such as 2.5, whose labels are wider than the measured ones."""
    figure = telemetry_strip(**comparison_frames.heated(300))
    _lay_out(figure)
    figure.set_layout_engine(None)
    FigureCanvasAgg(figure).draw()
    assert "2.5" in [tick.get_text() for tick in figure.axes[-1].get_yticklabels()]
    assert min(panel.yaxis.label.get_window_extent().x0 for panel in figure.axes) >= 0


def test_png_only_where_it_is_wanted(made: ModuleType, tmp_path: Path) -> None:
    assert style.save(_figure(made, "window"), tmp_path / "one", png=False) == [tmp_path / "one.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.svg"]
