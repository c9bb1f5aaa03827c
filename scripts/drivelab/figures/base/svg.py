"""Smaller SVG than matplotlib writes: a report has hundreds of figures, and most of their bytes are repetition."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Verdana has the widths of DejaVu Sans, for readers without that font."""
_SILENT = re.compile(r"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(\[[^\]]*\])?[^>]*>|<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="([^"]*)"')
_MARK = re.compile(r"[pmknc]\d+")
_TICK = re.compile(r"([xy])tick_\d+")
_VALUES = re.compile(r"<metadata>(.*?)</metadata>", re.DOTALL)
_EMPTY_GROUP = re.compile(r"<g(?:[^<>]*[^<>/])?>\s*</g>|<g[^<>]*/>")
_LONE = re.compile(r"<g>\s*(<(?:path|use)[^<>]*/>|<text[^<>]*>[^<]*</text>)\s*</g>")
"""A group around one element that says nothing."""
_TAG = re.compile(r"<[a-z][^<>]*>")
_FRACTION = re.compile(r"-?\d+\.\d{2,}")
_SHAPE = 10.0
"""The shape of a marker is around the origin and smaller than this; its coordinates keep hundredths."""
_PATH = re.compile(r'(?<= d=")[^"]*')
_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')
_BREAKS = re.compile(r"\s*\n\s*")
_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")
_STYLE = re.compile(r' style="([^"]*)"')
_SPACE = re.compile(r"([:;]) ")
_SHAPE_ID = re.compile(r'(?<=[#"])[a-z][0-9a-f]{10}(?=[")])')
"""matplotlib's name of a clip path or a marker: a hash of coordinates before they are rounded."""
_FEWEST_USES = 2
"""Minimum number of uses for which a rule is shorter than the style itself."""


def compact(svg: str) -> str:
    """Return the same picture in fewer bytes.

    Coordinates have tenths of a point, or hundredths near 0, as in the shapes of markers. Comments, document type and
    metadata are removed. Repeated styles become classes, shapes are numbered, and the ids of marks (`figures.values`)
    become the attributes data-p, data-m, data-k, data-n, data-c and data-t. Numbers in texts do not change. Each
    picture must be complete, as in an `<img>`: ids and classes of several in one document would clash.
    """
    svg = _GROUP_ID.sub(_marked, _SILENT.sub("", svg))
    svg = _TAG.sub(lambda tag: _BREAKS.sub(" ", _FRACTION.sub(_rounded, tag[0])), svg)
    svg = _NO_TURN.sub("", _PATH.sub(lambda path: _COMMAND.sub(r"\1", path[0]).strip(), svg))
    svg = _LONE.sub(r"\1", _EMPTY_GROUP.sub("", svg)).replace(" font-family: 'DejaVu Sans';", "")
    names = {name: f"i{place}" for place, name in enumerate(dict.fromkeys(_SHAPE_ID.findall(svg)))}
    svg = _SHAPE_ID.sub(lambda name: names[name[0]], svg)
    return _with_classes(_BETWEEN_TAGS.sub("><", svg).strip())


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


def _marked(group: re.Match[str]) -> str:
    """Return the ids of panels, marks, legend entries, notes and ticks as data attributes, and drop other ids."""
    name = group[1]
    if _MARK.fullmatch(name):
        return f'<g data-{name[0]}="{name[1:]}"'
    tick = _TICK.fullmatch(name)
    return f'<g data-t="{tick[1]}"' if tick else "<g"


def _rounded(number: re.Match[str]) -> str:
    value = float(number[0])
    return f"{value:.{2 if abs(value) < _SHAPE else 1}f}".rstrip("0").rstrip(".")


def _with_classes(svg: str) -> str:
    svg = _STYLE.sub(lambda style: _SPACE.sub(r"\1", style[0]), svg)
    uses = Counter(_STYLE.findall(svg)).most_common()
    classes = {style: f"c{place}" for place, (style, count) in enumerate(uses) if count >= _FEWEST_USES}
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    svg = _STYLE.sub(lambda style: f' class="{classes[style[1]]}"' if style[1] in classes else style[0], svg)
    return svg.replace("</style>", f"{rules} text{{font-family:{FONTS}}}</style>", 1)
