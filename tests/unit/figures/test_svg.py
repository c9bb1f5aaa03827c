"""SVG made smaller: the picture stays."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import pytest
from matplotlib.text import Text

from drivelab.figures import render, save
from drivelab.figures.svg import compact

HEAD = '<?xml version="1.0"?>\n<!-- made -->\n<svg>\n <metadata><a/></metadata>\n <defs><style>*{}</style></defs>\n'
SVG = "{http://www.w3.org/2000/svg}"


def test_coordinates_are_rounded_and_texts_are_not() -> None:
    path = '<path d="M 1.23456 2.000001 \nL -0.004999 5 \n" style="opacity: 0.123456"/>'
    svg = compact(f'{HEAD}<g id="axes_1">{path}<text x="9.87654">99.99999 % in 1.23456 s</text></g></svg>')
    assert 'd="M1.23 2L-0 5"' in svg
    assert 'opacity: 0.12"' in svg
    assert '<text x="9.88">99.99999 % in 1.23456 s</text>' in svg
    assert "made" not in svg
    assert "metadata" not in svg
    assert "axes_1" not in svg


def test_references_survive() -> None:
    svg = compact(f'{HEAD}<clipPath id="p1"/><g clip-path="url(#p1)"><path id="m1" d="M 0 0 "/></g></svg>')
    assert 'id="p1"' in svg
    assert "url(#p1)" in svg
    assert 'id="m1"' in svg


@pytest.mark.parametrize("name", ["window", "measurement_3d"])
def test_a_figure_keeps_all_its_texts(made: ModuleType, name: str, tmp_path: Path) -> None:
    figure = render(name, {"cells": made.cells(), "steady_state": made.steady_state()}, "op7 <b> & co")
    svg, _ = save(figure, tmp_path / "figure")
    tree = ElementTree.parse(svg).getroot()
    drawn = {"".join(one.itertext()).strip() for one in tree.iter(f"{SVG}text")}
    wanted = {text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()}
    lines = {line for text in wanted for line in text.split("\n")}
    unseen = {text.get_text() for one in figure.axes for axis in _axes(one) for text in axis.get_ticklabels(minor=True)}
    assert "op7 <b> & co" in drawn
    assert len(lines - drawn - unseen) <= 6, lines - drawn  # ticks beyond the limits of an axis
    references = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", svg.read_text()))
    ids = {one.get("id") for one in tree.iter() if one.get("id")}
    assert {first or second for first, second in references} <= ids
    assert svg.stat().st_size < 45_000  # 56 columns of three faces


def _axes(axes: object) -> list[object]:
    return [getattr(axes, f"{one}axis") for one in "xyz" if hasattr(axes, f"{one}axis")]
