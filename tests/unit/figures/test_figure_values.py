"""The SVG of a figure contains the values, names and axes of its marks."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import numpy as np
import pytest
from chart_values import chart, marks, tooltips
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import LogNorm

from drivelab.figures.base import style
from drivelab.figures.base.marks import numbers
from drivelab.figures.base.svg import values_of, without_values
from drivelab.figures.base.words import time
from drivelab.figures.kinds.convergence import convergence

HALF_A_DIGIT = 5.1e-5
"""Of seven."""
SVG = "{http://www.w3.org/2000/svg}"


def test_the_legend_is_that_of_the_picture_and_each_mark_knows_its_entry(made: ModuleType) -> None:
    figure = convergence(made.cells(7, sizes=(4096, 65536)), made.steady_state(start=3))
    result = marks(figure)
    (legend,) = figure.legends
    assert chart(figure)["legend"] == [text.get_text() for text in legend.get_texts()]
    lines = [mark for mark in result if mark.get("x") == [1, 2, 3, 4, 5, 6, 7]]
    assert [(mark["name"], mark["key"]) for mark in lines] == [("4KiB *", 0), ("64KiB", 1)]
    assert tooltips(lines[0])[0][:2] == ["4KiB *", "Round: 1"]
    assert re.fullmatch(r"I/O rate: [\d,.]+ IOPS", tooltips(lines[0])[0][2])
    outside = [mark for mark in result if mark.get("x") == [1, 2]]
    assert [mark["name"] for mark in outside] == ["4KiB *", "64KiB"], "hollow markers have no label"


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
