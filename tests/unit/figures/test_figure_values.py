"""The SVG of a figure contains the values, names and axes of its marks, in few bytes."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import comparison_frames
import numpy as np
import pts_frames as pts
import pytest
from chart_values import chart, marks, tooltips
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LogNorm
from matplotlib.text import Text

from drivelab.figures.base import style
from drivelab.figures.base.marks import numbers
from drivelab.figures.base.sheets import render
from drivelab.figures.base.style import save
from drivelab.figures.base.svg import for_page, values_of, without_values
from drivelab.figures.base.words import time
from drivelab.figures.kinds.seconds import telemetry_strip
from drivelab.figures.kinds.steady_state import convergence

HALF_A_DIGIT = 5.1e-5
"""Of seven."""
SVG = "{http://www.w3.org/2000/svg}"


def test_the_legend_is_that_of_the_picture_and_each_mark_knows_its_entry() -> None:
    figure = convergence(pts.cells(7, sizes=(4096, 65536), mixes=(0,)), pts.steady_state(start=3))
    result = marks(figure)
    (legend,) = figure.legends
    assert chart(figure)["legend"] == [text.get_text() for text in legend.get_texts()]
    lines = [mark for mark in result if mark.get("x") == [1, 2, 3, 4, 5, 6, 7]]
    assert [(mark["name"], mark["key"]) for mark in lines] == [("RND 4KiB 0/100 *", 0), ("RND 64KiB 0/100", 1)]
    assert tooltips(lines[0])[0][:2] == ["RND 4KiB 0/100 *", "Round: 1"]
    assert re.fullmatch(r"I/O rate: [\d,.]+ IOPS", tooltips(lines[0])[0][2])
    outside = [mark for mark in result if mark.get("x") == [1, 2]]
    assert [mark["name"] for mark in outside] == ["RND 4KiB 0/100 *", "RND 64KiB 0/100"], "hollow markers have no label"


def test_a_map_of_colours_has_values_edges_and_the_name_of_its_bar() -> None:
    figure = style.new_figure("Map")
    axes, beside = figure.subplots(1, 2, width_ratios=(28, 1))
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


HEAD = '<?xml version="1.0"?>\n<!-- made -->\n<svg>\n <metadata><a/></metadata>\n <defs><style>*{}</style></defs>\n'
SVG = "{http://www.w3.org/2000/svg}"


def test_coordinates_are_rounded_and_texts_are_not() -> None:
    path = '<path d="M 1.23456 2.000001 \nL 0.5 50.167 \n" style="opacity: 0.123456"/>'
    svg = for_page(f'{HEAD}<g id="axes_1">{path}<text x="98.7654">99.99999 % in 1.23456 s</text></g></svg>')
    assert 'd="M 1.23 2 L 0.5 50.2 "' in svg
    assert '<text x="98.8">99.99999 % in 1.23456 s</text>' in svg
    assert not {"made", "metadata", "axes_1"} & set(re.findall(r"\w+", svg))


def test_ids_of_marks_and_ticks_become_data_and_references_survive() -> None:
    marks = '<g id="m12"><path d="M 0 0"/></g><g id="xtick_3"><path id="m1" d="M 0 1"/></g>'
    svg = for_page(f'{HEAD}<clipPath id="p1"/><g id="p0" clip-path="url(#p1)">{marks}</g></svg>')
    assert '<g data-p="0" clip-path="url(#p1)"><g data-m="12"><path d="M 0 0"/></g><g data-t="x">' in svg
    assert '<clipPath id="p1"/>' in svg
    assert 'id="m1"' in svg


def test_a_clip_path_has_the_same_name_if_only_digits_that_are_rounded_differ() -> None:
    def drawn(name: str, width: str) -> str:
        rectangle = f'<clipPath id="{name}"><rect x="1.5" width="{width}"/></clipPath>'
        return for_page(f'{HEAD}<g clip-path="url(#{name})"/><defs>{rectangle}</defs></svg>')

    assert drawn("p6773756749", "171.2000000000001") == drawn("p0f3ab0775e", "171.2")
    (used,) = re.findall(r"url\(#(\w+)\)", drawn("p6773756749", "171.2"))
    assert f'id="{used}"' in drawn("p6773756749", "171.2")
    assert used not in drawn("p6773756749", "171.4")


@pytest.mark.parametrize("name", ["window", "measurement_2d"])
def test_a_figure_keeps_all_its_texts(name: str, tmp_path: Path) -> None:
    figure = render(name, {"cells": pts.cells(), "steady_state": pts.steady_state()}, "op7 <b> & co")
    svg, _ = save(figure, tmp_path / "figure")
    tree = ElementTree.parse(svg).getroot()
    drawn = {"".join(element.itertext()).strip() for element in tree.iter(f"{SVG}text")}
    wanted = {text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()}
    lines = {line for text in wanted for line in text.split("\n")}
    unseen = {text.get_text() for one in figure.axes for axis in _axes(one) for text in axis.get_ticklabels(minor=True)}
    assert "op7 <b> & co" in drawn
    assert len(lines - drawn - unseen) <= 6, lines - drawn  # ticks beyond the limits of an axis
    references = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", svg.read_text()))
    ids = {element.get("id") for element in tree.iter() if element.get("id")}
    assert {first or second for first, second in references} <= ids
    assert svg.stat().st_size < 45_000


def _axes(axes: object) -> list[object]:
    return [getattr(axes, f"{name}axis") for name in "xyz" if hasattr(axes, f"{name}axis")]


def test_axes_have_room_for_their_labels() -> None:
    figure = telemetry_strip(**comparison_frames.heated(300))
    style.styled(style.settle)(figure)
    FigureCanvasAgg(figure).draw()
    assert min(panel.yaxis.label.get_window_extent().x0 for panel in figure.axes) >= 0


def test_png_only_where_it_is_wanted(tmp_path: Path) -> None:
    figure = render("window", {"steady_state": pts.steady_state()}, "op7")
    assert style.save(figure, tmp_path / "one", png=False) == [tmp_path / "one.svg"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.svg"]
