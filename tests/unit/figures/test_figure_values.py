"""The SVG of a figure contains the values, names and axes of its marks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import protocol_frames as frames
import pytest
from chart_values import chart, marks, tooltips
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import LogNorm
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.patches import StepPatch

from drivelab.figures.base import style
from drivelab.figures.base.marks import numbers
from drivelab.figures.base.svg import values_of, without_values
from drivelab.figures.base.words import time
from drivelab.figures.kinds.demand.demand import demand_variation
from drivelab.figures.kinds.demand.demand_intensity import demand_intensity
from drivelab.figures.kinds.drives.strip_lines import head_to_head
from drivelab.figures.kinds.latency.latency_distribution import latency_distribution
from drivelab.figures.kinds.latency.nines import nines
from drivelab.figures.kinds.loop.convergence import convergence
from drivelab.figures.kinds.loop.measurement_3d import measurement_2d
from drivelab.figures.kinds.loop.repeats import repeats
from drivelab.figures.kinds.loop.window import window
from drivelab.figures.kinds.soak.idle_recovery import idle_recovery, stimulus
from drivelab.figures.kinds.soak.saturation_bytes import saturation_bytes

HALF_A_DIGIT = 5.1e-5
"""Of seven."""
SVG = "{http://www.w3.org/2000/svg}"


def is_drawn(found: list[dict[str, Any]], x: Any, y: Any) -> bool:
    """Return whether a mark has exactly these points."""

    def same(one: list[float | None], other: Any) -> bool:
        values = [math.nan if value is None else value for value in one]
        return len(values) == len(other) and np.allclose(
            values, np.asarray(other, dtype=float), rtol=HALF_A_DIGIT, equal_nan=True
        )

    return any(same(mark["x"], x) and same(mark["y"], y) for mark in found if "x" in mark and "z" not in mark)


def drawings(made: ModuleType) -> dict[str, Callable[[], Figure]]:
    cells, steady = made.cells(7), made.steady_state()
    return {
        "convergence": partial(convergence, cells, steady),
        "window": partial(window, steady),
        "measurement_2d": partial(measurement_2d, cells, steady),
        "repeats": partial(repeats, frames.repeated(), frames.NO_WINDOWS),
        "demand_variation": partial(demand_variation, frames.sweep(), frames.NO_WINDOWS),
        "demand_intensity": partial(demand_intensity, frames.with_points(frames.sweep()), frames.NO_WINDOWS),
        "idle_recovery": partial(idle_recovery, frames.idle()),
        "stimulus": partial(stimulus, frames.crossed()),
        "nines": partial(nines, frames.bins()),
        "head_to_head": partial(head_to_head, **frames.together()),
        "latency_distribution": partial(latency_distribution, made.latency_bins()),
        "saturation_bytes": partial(saturation_bytes, made.soak(), made.drives(op7=480 * 10**9)),
    }


NAMES = (
    "convergence",
    "window",
    "measurement_2d",
    "repeats",
    "demand_variation",
    "demand_intensity",
    "idle_recovery",
    "stimulus",
    "nines",
    "head_to_head",
    "latency_distribution",
    "saturation_bytes",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_line_and_bar_is_there(name: str, made: ModuleType) -> None:
    figure = drawings(made)[name]()
    result = marks(figure)
    checked = 0
    for axes in figure.axes:
        for line in axes.get_lines():
            if line.get_transform() == axes.transData and len(line.get_xdata()):
                x, y = line.get_xdata(orig=False), line.get_ydata(orig=False)
                assert is_drawn(result, x, y), f"{name}: {line.get_label()}"
                checked += 1
        for patch in axes.patches:
            if isinstance(patch, StepPatch):
                values, edges, _ = patch.get_data()
                assert is_drawn(result, (edges[:-1] + edges[1:]) / 2, values)
                checked += 1
        for bars in (container for container in axes.containers if isinstance(container, BarContainer)):
            flat = bars.orientation == "horizontal"
            ends = [bar.get_width() if flat else bar.get_height() for bar in bars.patches]
            along = [mark["x" if flat else "y"] for mark in result if mark.get("bar")]
            assert any(len(values) == len(ends) and np.allclose(values, ends, rtol=HALF_A_DIGIT) for values in along)
            checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", NAMES)
def test_axes_have_names_scales_and_limits_of_the_picture(name: str, made: ModuleType) -> None:
    figure = drawings(made)[name]()
    panels = chart(figure)["panels"]
    for panel, axes in zip(panels, [one for one in figure.axes if one.axison], strict=True):
        for which, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            shown = panel[which]
            assert shown["name"] in " ".join(axis.get_label_text().split()) or not axis.get_label_text()
            assert shown["scale"] == axis.get_scale()
            limits = axes.get_xlim() if which == "x" else axes.get_ylim()
            assert shown["ends"] == pytest.approx(list(limits), rel=1e-6, abs=1e-9)


def test_the_legend_is_that_of_the_picture_and_each_mark_knows_its_entry(made: ModuleType) -> None:
    figure = convergence(made.cells(7, sizes=(4096, 65536)), made.steady_state(start=3))
    result = marks(figure)
    (legend,) = figure.legends
    assert chart(figure)["legend"] == [text.get_text() for text in legend.get_texts()]
    lines = [mark for mark in result if mark.get("x") == [1, 2, 3, 4, 5, 6, 7]]
    assert [(mark["name"], mark["key"]) for mark in lines] == [("4KiB *", 0), ("64KiB", 1)]
    assert tooltips(lines[0])[0][:2] == ["4KiB *", "Round: 1"]
    assert re.fullmatch(r"I/O rate: [\d,.]+ IOPS", tooltips(lines[0])[0][2])
    inside = [mark for mark in result if mark.get("x") == [3, 4, 5, 6, 7]]
    assert [mark["name"] for mark in inside] == ["4KiB *", "64KiB"], "filled markers have no label"


def test_a_map_of_colours_has_values_edges_and_the_name_of_its_bar() -> None:
    figure = style.new_figure("Map")
    axes, beside = figure.subplots(1, 2, width_ratios=style.WITH_COLOUR_BAR)
    values = np.array([[1.0, 10.0, 100.0], [1000.0, np.nan, 50.0]])
    mesh = axes.pcolormesh([0, 1, 2, 3], [0, 5, 10], np.ma.masked_invalid(values), norm=LogNorm(1, 1000))
    figure.colorbar(mesh, cax=beside, label="Requests (number)")
    result = chart(figure)
    assert len(result["panels"]) == 1, "the colour bar is not a panel"
    (mark,) = result["panels"][0]["marks"]
    assert (mark["x"], mark["y"]) == ([0, 1, 2, 3], [0, 5, 10])
    assert mark["z"] == [1, 10, 100, 1000, None, 50]
    assert mark["z_name"] == "Requests"


def test_bars_on_a_base_tell_their_length_at_their_end() -> None:
    figure = style.new_figure("Stack")
    axes = figure.subplots()
    axes.bar([0, 1], [10, 20], label="user")
    axes.bar([0, 1], [1, 2], bottom=[10, 20], label="system")
    axes.set_ylabel("CPU (%)")
    axes.set_xticks([0, 1], ["T1Q1", "T2Q1"])
    lower, upper = marks(figure)
    assert (lower["y"], upper["y"]) == ([10, 20], [11, 22])
    assert tooltips(upper) == [["system", "T1Q1", "CPU: 1 %"], ["system", "T2Q1", "CPU: 2 %"]]


def test_steps_on_steps_tell_their_own_height() -> None:
    figure = style.new_figure("Stack")
    axes = figure.subplots()
    axes.stairs([1, 2], [0, 10, 20], fill=True, label="reads")
    axes.stairs([4, 6], [0, 10, 20], baseline=np.array([1, 2]), fill=True, label="writes")
    axes.set_ylabel("Requests (number)")
    _, upper = marks(figure)
    assert (upper["x"], upper["y"]) == ([5, 15], [4, 6])
    assert [lines[-1] for lines in tooltips(upper)] == ["Requests: 3", "Requests: 4"]


def test_a_scale_that_the_page_does_not_have_is_straightened() -> None:
    figure = style.new_figure("Symlog")
    axes = figure.subplots()
    axes.plot([-100, 0, 1000], [1, 2, 3], label="op28")
    axes.set_xscale("symlog", linthresh=10)
    (mark,) = marks(figure)
    x = mark["panel"]["x"]
    low, high = x["ends"]
    left, right = (axes.transData.transform((value, 1))[0] for value in (-100, 1000))
    shares = [(value - low) / (high - low) for value in mark["x"]]
    assert x["scale"] == "linear"
    assert (shares[2] - shares[0]) * axes.bbox.width == pytest.approx(right - left, rel=1e-5)
    assert [lines[1] for lines in tooltips(mark)] == ["-100", "0", "1,000"]


def test_a_time_axis_says_its_unit_and_start() -> None:
    figure = style.new_figure("Time")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot([1, 2], [3, 4])
    time(lower.xaxis, 60.0, 5.0)
    assert [panel["x"]["time"] for panel in chart(figure)["panels"]] == [[60.0, 5.0]] * 2
    assert [panel["x"]["with"] for panel in chart(figure)["panels"]] == [0, 0]


def test_ids_of_artists_are_as_they_were() -> None:
    figure = style.new_figure("Title")
    (line,) = figure.subplots().plot([1, 2], [3, 4], gid="line")
    assert 'data-m="0"' in style.svg(figure)
    assert line.get_gid() == "line"


def test_values_stand_in_the_picture_and_can_be_taken_out() -> None:
    figure = style.new_figure("A < b & c")
    figure.subplots().plot([1, 2], [3, 4], label="<script> & ]]>")
    svg = style.svg(figure)
    root = ElementTree.fromstring(svg)
    (metadata,) = root.iter(f"{SVG}metadata")
    assert json.loads(str(metadata.text)) == json.loads(values_of(svg))
    result = json.loads(values_of(svg))
    assert result["panels"][0]["marks"][0]["name"] == "<script> & ]]>"
    assert values_of(without_values(svg)) == ""


def test_saving_a_figure_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    figure = style.new_figure("Title")
    figure.subplots().plot([1, 2], [3, 4])
    style.save(figure, tmp_path / "one")
    style.save(figure, tmp_path / "two")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.png", "one.svg", "two.png", "two.svg"]


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=1))
def test_numbers_have_seven_digits_and_are_json(values: list[float]) -> None:
    result = numbers(values)
    json.dumps(result, allow_nan=False)
    for value, shown in zip(values, result, strict=True):
        if not math.isfinite(value):
            assert shown is None
        elif 1e-290 < abs(value) < 1e300:
            assert shown == pytest.approx(value, rel=HALF_A_DIGIT)


@given(st.integers(-(2**53), 2**53))
def test_whole_numbers_have_all_their_digits(value: int) -> None:
    assert numbers([value]) == [value]
