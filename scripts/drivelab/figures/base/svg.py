"""The SVG that matplotlib writes, with the values of a figure and the marks that a page of a report finds."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

_FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Verdana has the widths of DejaVu Sans, for readers without that font."""
_HEAD = re.compile(r"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>]*>|<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="([^"]*)"')
_MARK = re.compile(r"([pmknc])(\d+)")
_TICK = re.compile(r"([xy])tick_\d+")
_VALUES = re.compile(r"<metadata>(.*?)</metadata>", re.DOTALL)
_TAG = re.compile(r"<[a-z][^<>]*>")
_FRACTION = re.compile(r"-?\d+\.\d{3,}")
_CLIP = re.compile(r'<clipPath id="(\w+)">(.*?)</clipPath>', re.DOTALL)
_SHAPE = 10.0
_BREAKS = re.compile(r"\s*\n\s*")


def for_page(svg: str) -> str:
    """Return the same picture for a page of a report.

    The ids of marks (`figures.base.values`) and ticks become the attributes data-p, data-m, data-k, data-n, data-c and
    data-t; other groups have no id, as those of several figures would clash. Coordinates have tenths of a point, or
    hundredths near 0, as in the shapes of markers; numbers in texts do not change. A clip path is named after its
    rounded shape: matplotlib's name has all digits, of which the last differ from one drawing to the next.
    """
    svg = _GROUP_ID.sub(_marked, _HEAD.sub("", svg)).replace(" font-family: 'DejaVu Sans';", "")
    svg = _TAG.sub(lambda tag: _BREAKS.sub(" ", _FRACTION.sub(_rounded, tag[0])), svg)
    if names := {clip: f"p{zlib.crc32(shape.encode()):08x}" for clip, shape in _CLIP.findall(svg)}:
        svg = re.sub(rf'(?<=[#"])(?:{"|".join(names)})(?=[)"])', lambda clip: names[clip[0]], svg)
    return _BREAKS.sub("\n", svg).strip().replace("</style>", f"text{{font-family:{_FONTS}}}</style>", 1)


def _rounded(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{round(value, 1 if abs(value) >= _SHAPE else 2):g}"


def _marked(group: re.Match[str]) -> str:
    if mark := _MARK.fullmatch(group[1]):
        return f'<g data-{mark[1]}="{mark[2]}"'
    tick = _TICK.fullmatch(group[1])
    return f'<g data-t="{tick[1]}"' if tick else "<g"


def with_values(svg: str, values: Mapping[str, Any]) -> str:
    """Return an SVG that carries the values of its marks as JSON in its `metadata`."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "&<>":
        text = text.replace(letter, f"\\u{ord(letter):04x}")  # escaped for XML by means of JSON
    head, end, tail = svg.rpartition("</svg>")
    return f"{head}<metadata>{text}</metadata>{end}{tail}"


def values_of(svg: str) -> str:
    """Return the values that an SVG carries as JSON text, or an empty text."""
    values = _VALUES.search(svg)
    return values[1] if values else ""


def without_values(svg: str) -> str:
    """Return the SVG without its values."""
    return _VALUES.sub("", svg)
