"""A figure as a data URI: it is safe in an HTML attribute and keeps any text."""

from __future__ import annotations

from urllib.parse import unquote
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from jinja2 import Environment

from drivelab.report.html import data_uri

SVG = "{http://www.w3.org/2000/svg}"
HEAD = "data:image/svg+xml;charset=utf-8,"
DRAWN = """<svg xmlns="http://www.w3.org/2000/svg"><path id="i0" d="M0 0" style="fill:#b00020"/>
<g clip-path="url(#i0)"><text>a &lt; b &amp; 'c' "d" 100 % #1 µs: x; y</text></g></svg>"""


def test_a_data_uri_is_safe_in_an_html_attribute() -> None:
    uri = data_uri(DRAWN)
    shown = Environment(autoescape=True).from_string('<img src="{{ uri }}">').render(uri=uri)
    assert shown == f'<img src="{uri}">'
    assert not set('"&#\n') & set(uri)
    back = ET.fromstring(unquote(uri.removeprefix(HEAD)))
    assert [(element.tag, element.attrib, (element.text or "").strip()) for element in back.iter()] == [
        (element.tag, element.attrib, (element.text or "").strip()) for element in ET.fromstring(DRAWN).iter()
    ]


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff")))
def test_a_data_uri_keeps_any_text(text: str) -> None:
    root = ET.Element(f"{SVG}svg")
    ET.SubElement(root, f"{SVG}text", {"aria-label": text}).text = text
    back = ET.fromstring(unquote(data_uri(ET.tostring(root, encoding="unicode")).removeprefix(HEAD)))
    assert (back[0].text or "") == text
    assert back[0].attrib["aria-label"] == text
