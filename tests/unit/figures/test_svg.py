"""Compact SVG shows the same picture in fewer bytes."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from matplotlib.text import Text

from drivelab.figures.base.sheets import render
from drivelab.figures.base.style import save
from drivelab.figures.base.svg import compact

HEAD = '<?xml version="1.0"?>\n<!-- made -->\n<svg>\n <metadata><a/></metadata>\n <defs><style>*{}</style></defs>\n'
SVG = "{http://www.w3.org/2000/svg}"


def test_coordinates_are_rounded_and_texts_are_not() -> None:
    path = '<path d="M 1.23456 2.000001 \nL -0.004999 50.16 \n" style="opacity: 0.123456"/>'
    svg = compact(f'{HEAD}<g id="axes_1">{path}<text x="98.7654">99.99999 % in 1.23456 s</text></g></svg>')
    assert 'd="M1.23 2L-0 50.2"' in svg
    assert 'opacity:0.12"' in svg
    assert '<text x="98.8">99.99999 % in 1.23456 s</text>' in svg
    assert "made" not in svg
    assert "metadata" not in svg
    assert "axes_1" not in svg


def test_ids_of_marks_and_ticks_become_data() -> None:
    svg = compact(f'{HEAD}<g id="p0"><g id="m12"><path d="M0 0"/></g><g id="xtick_3"><path d="M0 1"/></g></g></svg>')
    assert '<g data-p="0"><g data-m="12"><path d="M0 0"/></g><g data-t="x">' in svg


@pytest.mark.parametrize("empty", ["<g/>", '<g id="x"/>', '<g id="m1"></g>', '<g style="a">\n</g>'])
def test_groups_without_content_leave_no_end_behind(empty: str) -> None:
    svg = compact(f'{HEAD}<g id="p0">{empty}</g><g id="p1">{empty}<path d="M0 0"/></g></svg>')
    groups = ElementTree.fromstring(svg).findall("g")
    assert [group.get("data-p") for group in groups][-1] == "1"


def test_references_survive() -> None:
    svg = compact(f'{HEAD}<clipPath id="p1"/><g clip-path="url(#p1)"><path id="m1" d="M 0 0 "/></g></svg>')
    assert 'id="p1"' in svg
    assert "url(#p1)" in svg
    assert 'id="m1"' in svg


@pytest.mark.parametrize("name", ["window", "measurement_2d"])
def test_a_figure_keeps_all_its_texts(made: ModuleType, name: str, tmp_path: Path) -> None:
    figure = render(name, {"cells": made.cells(), "steady_state": made.steady_state()}, "op7 <b> & co")
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


def test_repeated_styles_become_classes() -> None:
    path = '<path style="fill: none; stroke: #112233"/>'
    svg = compact(f"{HEAD}{path}{path}<path style='x'/></svg>")
    assert svg.count('<path class="c0"/>') == 2
    assert ".c0{fill:none;stroke:#112233}" in svg
