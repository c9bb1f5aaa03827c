"""SVG made small: what shows is the same, and an attribute of HTML holds it as it is."""

from __future__ import annotations

import re
from io import BytesIO
from urllib.parse import unquote
from xml.etree import ElementTree as ET

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

from drivelab.report.slim import data_uri, slim

SVG = "{http://www.w3.org/2000/svg}"
HREF = "{http://www.w3.org/1999/xlink}href"
HEAD = "data:image/svg+xml;charset=utf-8,"


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


def styles(root: ET.Element) -> dict[str, str]:
    """Declarations by class."""
    text = "".join(one.text or "" for one in root.iter(f"{SVG}style"))
    return dict(re.findall(r"\.(\w+)\{([^}]*)\}", text))


def what_shows(svg: str) -> list[tuple[object, ...]]:
    """Every drawn element with its style, text and all that it refers to; ids by the order of their first use."""
    root = ET.fromstring(svg)
    rules, names = styles(root), {}
    for one in root.iter():
        if "id" in one.attrib:
            names[one.attrib["id"]] = len(names)

    def known(value: str) -> str:
        return re.sub(r"#([\w.-]+)", lambda found: f"#{names.get(found[1], found[1])}", value)

    found: list[tuple[object, ...]] = []
    for one in root.iter():
        given = dict(one.attrib)
        if "class" in given:
            given["style"] = rules[given.pop("class")]
        given.pop("id", None)
        if one.tag in (f"{SVG}style", f"{SVG}metadata") or (one.tag == f"{SVG}g" and not given):
            continue
        if any(one in held.iter() for held in root.iter(f"{SVG}metadata")):
            continue
        style = known(re.sub(r"\s", "", given.pop("style", "")))
        found.append((one.tag, style, (one.text or "").strip(), {key: known(value) for key, value in given.items()}))
    return found


def test_the_same_shows(drawn: str) -> None:
    assert what_shows(slim(drawn)) == what_shows(drawn)


def test_it_is_less_than_half_before_it_is_encoded(drawn: str) -> None:
    assert len(slim(drawn)) < 0.6 * len(drawn)


def test_made_small_twice_it_is_the_same(drawn: str) -> None:
    assert slim(slim(drawn)) == slim(drawn)


def test_an_attribute_of_html_holds_it_as_it_is(drawn: str) -> None:
    uri = data_uri(slim(drawn))
    shown = Environment(autoescape=True).from_string('<img src="{{ uri }}">').render(uri=uri)
    assert shown == f'<img src="{uri}">'
    assert not set('"<>&#\n') & set(uri)
    assert what_shows(unquote(uri.removeprefix(HEAD))) == what_shows(drawn)


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")))
def test_any_text_comes_through(text: str) -> None:
    root = ET.Element(f"{SVG}svg")
    ET.SubElement(root, f"{SVG}text", {"aria-label": text}).text = text
    back = ET.fromstring(unquote(data_uri(slim(ET.tostring(root, encoding="unicode"))).removeprefix(HEAD)))
    assert (back[0].text or "") == text
    assert back[0].attrib["aria-label"] == text


def test_groups_that_say_something_stay() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg"><g><g clip-path="url(#a)"><g/><path d="M0 0"/></g></g></svg>'
    assert slim(svg) == ('<svg xmlns="http://www.w3.org/2000/svg"><g clip-path="url(#a)"><path d="M0 0"/></g></svg>')
