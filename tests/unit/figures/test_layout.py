"""Panels have room for their texts, and files are those that are wanted."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import comparison_frames
from matplotlib.backends.backend_agg import FigureCanvasAgg

from drivelab.figures.base import style
from drivelab.figures.base.sheets import render
from drivelab.figures.kinds.seconds import telemetry_strip


def test_axes_that_grow_have_room_for_their_new_ticks() -> None:
    """The last panel gets ticks such as 2.5, whose labels are wider than the measured ones."""
    figure = telemetry_strip(**comparison_frames.heated(300))
    style.styled(style.settle)(figure)
    FigureCanvasAgg(figure).draw()
    assert "2.5" in [tick.get_text() for tick in figure.axes[-1].get_yticklabels()]
    assert min(panel.yaxis.label.get_window_extent().x0 for panel in figure.axes) >= 0


def test_png_only_where_it_is_wanted(made: ModuleType, tmp_path: Path) -> None:
    figure = render("window", {"steady_state": made.steady_state()}, "op7")
    assert style.save(figure, tmp_path / "one", png=False) == [tmp_path / "one.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.svg"]
