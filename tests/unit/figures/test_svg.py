"""Compact SVG shows the same picture in fewer bytes."""

from __future__ import annotations

import re
from io import BytesIO
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import pytest
from matplotlib.text import Text

from drivelab.figures import render, save
from drivelab.figures.base.svg import compact

HEAD = '<?xml version="1.0"?>\n<!-- made -->\n<svg>\n <metadata><a/></metadata>\n <defs><style>*{}</style></defs>\n'
SVG = "{http://www.w3.org/2000/svg}"


def test_coordinates_are_rounded_and_texts_are_not() -> None:
    path = '<path d="M 1.23456 2.000001 \nL -0.004999 5 \n" style="opacity: 0.123456"/>'
    svg = compact(f'{HEAD}<g id="axes_1">{path}<text x="9.87654">99.99999 % in 1.23456 s</text></g></svg>')
    assert 'd="M1.23 2l-1.23 3"' in svg
    assert 'opacity:0.12"' in svg
    assert '<text x="9.9">99.99999 % in 1.23456 s</text>' in svg
    assert "made" not in svg
    assert "metadata" not in svg
    assert "axes_1" not in svg


def test_ids_of_marks_and_ticks_become_data() -> None:
    svg = compact(f'{HEAD}<g id="p0"><g id="m12"><path d="M0 0"/></g><g id="xtick_3"><path d="M0 1"/></g></g></svg>')
    assert '<g data-p="0"><g data-m="12"><path d="M0 0"/></g><g data-t="x">' in svg


def test_long_lines_are_short() -> None:
    svg = compact(f'{HEAD}<path d="M 1.26 2 L 3 2 L 3.04 2.01 L 3 9 L 7.77 11 z"/><path d="M 0 0.25 L 1 0.25"/></svg>')
    assert 'd="M1.3 2h1.7v7l4.8 2z"' in svg
    assert 'd="M0 .25h1"' in svg


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


@pytest.mark.parametrize("name", ["window", "measurement_3d"])
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
    assert svg.stat().st_size < 45_000  # 56 columns of three faces


def _axes(axes: object) -> list[object]:
    return [getattr(axes, f"{name}axis") for name in "xyz" if hasattr(axes, f"{name}axis")]


@pytest.fixture(scope="module")
def drawn() -> str:
    figure, axes = plt.subplots()
    axes.plot([1, 2, 3], [3, 1, 2], marker="o", label="a < b & 'c' \"d\" 100 % #1 µs: x; y")
    axes.fill_between([1, 2, 3], [1, 0, 1], hatch="//")
    axes.legend()
    file = BytesIO()
    with plt.rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    plt.close(figure)
    return file.getvalue().decode()


def styles(root: ElementTree.Element) -> dict[str, str]:
    """Return the declarations by class."""
    text = "".join(element.text or "" for element in root.iter(f"{SVG}style"))
    return dict(re.findall(r"\.(\w+)\{([^}]*)\}", text))


def points(path: str) -> str:
    """Return the corners of straight lines to a tenth of a point, without repeated ones."""
    corners: list[tuple[float, float]] = []
    x, y = 0.0, 0.0
    for command, text in re.findall(r"([A-Za-z])([^A-Za-z]*)", path):
        if command == "z":
            continue
        numbers = [float(number) for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)", text)]
        start = (0.0, 0.0) if command.isupper() else (x, y)
        if command in "MLl":
            x, y = start[0] + numbers[0], start[1] + numbers[1]
        else:
            x, y = (start[0] + numbers[0], y) if command in "Hh" else (x, start[1] + numbers[0])
        corner = (round(round(x, 2), 1) + 0.0, round(round(y, 2), 1) + 0.0)
        if not corners or corner != corners[-1]:
            corners.append(corner)
    return str(corners)


def what_shows(svg: str) -> list[tuple[object, ...]]:
    """Return each drawn element with style, text and references; ids are numbered by first use."""
    root = ElementTree.fromstring(svg)
    rules, names = styles(root), {}
    for element in root.iter():
        if "id" in element.attrib and element.tag != f"{SVG}g":
            names[element.attrib["id"]] = len(names)

    def known(value: str) -> str:
        value = re.sub(r"#(\w)\1(\w)\2(\w)\3\b", r"#\1\2\3", value)
        value = re.sub(r"#([\w.-]+)", lambda found: f"#{names.get(found[1], found[1])}", value)
        value = re.sub(r"-?\d+\.\d+", lambda one: f"{float(one[0]):.2f}".rstrip("0").rstrip("."), value)
        return re.sub(r"\s|font-family: ?'DejaVu Sans';", "", value)

    found: list[tuple[object, ...]] = []
    for element in root.iter():
        given = {key.removeprefix("{http://www.w3.org/1999/xlink}"): value for key, value in element.attrib.items()}
        if "class" in given:
            given["style"] = rules[given.pop("class")]
        given = {key: value for key, value in given.items() if key != "id" and not key.startswith("data-")}
        if re.fullmatch(r"[MLHVlhvz\d.\s-]+", given.get("d", "")):
            given["d"] = points(given["d"])
        if element.tag in (f"{SVG}style", f"{SVG}metadata") or (element.tag == f"{SVG}g" and not given):
            continue
        if any(element in held.iter() for held in root.iter(f"{SVG}metadata")):
            continue
        if "rotate(-0" in given.get("transform", ""):
            del given["transform"]
        style = known(given.pop("style", ""))
        for key in {"x", "y"} & given.keys():
            given[key] = f"{float(given[key]):.1f}"
        attributes = {key: known(value) for key, value in given.items()}
        found.append((element.tag, style, (element.text or "").strip(), attributes))
    return found


def test_the_same_shows(drawn: str) -> None:
    assert what_shows(compact(drawn)) == what_shows(drawn)


def test_it_is_less_than_half(drawn: str) -> None:
    assert len(compact(drawn)) < 0.5 * len(drawn)


def test_groups_that_say_something_stay() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><g><g clip-path="url(#a)"><g/><path d="M0 0"/></g></g></svg>'
    assert compact(svg) == ('<svg xmlns="http://www.w3.org/2000/svg"><g clip-path="url(#a)"><path d="M0 0"/></g></svg>')
