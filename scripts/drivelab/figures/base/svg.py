"""SVG as matplotlib writes it, made smaller: a report has hundreds of them, and most of one is repetition."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Verdana has the widths of DejaVu Sans, for readers who have not got that."""
_SILENT = re.compile(r"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(\[[^\]]*\])?[^>]*>|<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="([^"]*)"')
_MARK = re.compile(r"[pmknc]\d+")
_TICK = re.compile(r"([xy])tick_\d+")
_VALUES = re.compile(r"<metadata>(.*?)</metadata>", re.DOTALL)
_EMPTY_GROUP = re.compile(r"<g[^<>]*>\s*</g>")
_GROUP = re.compile(r"<g\b[^>]*>|</g>")
_TAG = re.compile(r"<[a-z][^<>]*>")
_FRACTION = re.compile(r"-?\d+\.\d{3,}")
_PATH = re.compile(r'(?<= d=")[^"]*')
_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_STRAIGHT = re.compile(r"[ML-](?:[-\d. MLz]*)")
_POINT = re.compile(r"([ML])(-?[\d.]+) (-?[\d.]+)|z")
_FEWEST_POINTS = 3
"""Of a path for its coordinates to be rounded to a tenth of a point: the small shapes of markers are not."""
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')
_BREAKS = re.compile(r"\s*\n\s*")
_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")
_STYLE = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_ID_OR_REFERENCE = re.compile(r'( id="|#)([\w.-]+)(?=["\')])')
_FEWEST_USES = 3
"""Of a style, for a rule to be shorter than saying it each time."""


def compact(svg: str) -> str:
    """Return the same picture for every reader, without what no one sees.

    Coordinates are to a hundredth of a point, of long lines to a tenth. Comments, document type, metadata and groups
    without a mark are left out. Styles that return become classes, ids become short, and the ids of marks
    (`figures.values`) become the attributes data-p, data-m, data-k, data-n, data-c and data-t. Numbers in texts
    stay as they are. The picture must stand by itself, as in an `<img>`: ids and classes would clash with others.
    """
    svg = _GROUP_ID.sub(_marked, _SILENT.sub("", svg))
    svg = _TAG.sub(lambda tag: _BREAKS.sub(" ", _FRACTION.sub(_rounded, tag[0])), svg)
    svg = _PATH.sub(lambda path: _short(_COMMAND.sub(r"\1", path[0]).strip()), svg)
    svg = _NO_TURN.sub("", _EMPTY_GROUP.sub("", svg)).replace(" font-family: 'DejaVu Sans';", "")
    return _with_classes(_with_short_ids(_BETWEEN_TAGS.sub("><", _without_groups(svg)).strip()))


def with_values(svg: str, values: Mapping[str, Any]) -> str:
    """Return an SVG that carries the values of its marks as JSON in its `metadata`."""
    text = json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "&<>":
        text = text.replace(letter, f"\\u{ord(letter):04x}")  # JSON's own escape: XML reads no other
    head, end, tail = svg.rpartition("</svg>")
    return f"{head}<metadata>{text}</metadata>{end}{tail}"


def values_of(svg: str) -> str:
    """Return the values that an SVG carries, as JSON text; empty where it carries none."""
    found = _VALUES.search(svg)
    return found[1] if found else ""


def without_values(svg: str) -> str:
    """Return the picture alone."""
    return _VALUES.sub("", svg)


def _marked(group: re.Match[str]) -> str:
    """Keep the ids of panels, marks, legend entries, notes and ticks as data attributes; ids of others are noise."""
    name = group[1]
    if _MARK.fullmatch(name):
        return f'<g data-{name[0]}="{name[1:]}"'
    tick = _TICK.fullmatch(name)
    return f'<g data-t="{tick[1]}"' if tick else "<g"


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _short(path: str) -> str:
    """Return straight lines with coordinates to a tenth of a point, and H and V for what runs along an axis."""
    if path.count("L") < _FEWEST_POINTS or not _STRAIGHT.fullmatch(path):
        return path
    parts, before = [], ("", "")
    for found in _POINT.finditer(path):
        if not found[1]:
            parts.append("z")
            continue
        x, y = (f"{float(one):.1f}".removesuffix(".0") for one in found.groups()[1:])
        if found[1] == "M" or (x != before[0] and y != before[1]):
            parts.append(f"{found[1]}{x} {y}")
        elif (x, y) != before:
            parts.append(f"H{x}" if y == before[1] else f"V{y}")
        before = (x, y)
    return "".join(parts)


def _without_groups(svg: str) -> str:
    kept: list[str] = []
    open_: list[bool] = []
    end = 0
    for found in _GROUP.finditer(svg):
        tag = found[0]
        if tag == "</g>":
            left_out = open_.pop() if open_ else False
        else:
            left_out = tag in ("<g>", "<g/>")
            if not tag.endswith("/>"):
                open_.append(left_out)
        if left_out:
            kept.append(svg[end : found.start()])
            end = found.end()
    return "".join((*kept, svg[end:]))


def _with_short_ids(svg: str) -> str:
    names = {name: f"i{place}" for place, name in enumerate(dict.fromkeys(_ID.findall(svg)))}
    short = {name: new for name, new in names.items() if len(new) < len(name)}
    return _ID_OR_REFERENCE.sub(lambda found: found[1] + short.get(found[2], found[2]), svg)


def _with_classes(svg: str) -> str:
    uses = Counter(_STYLE.findall(svg)).most_common()
    classes = {style: f"c{place}" for place, (style, count) in enumerate(uses) if count >= _FEWEST_USES}
    rules = "".join(f".{name}{{{_tight(style)}}}" for style, name in classes.items())
    svg = _STYLE.sub(lambda one: f' class="{classes[one[1]]}"' if one[1] in classes else one[0], svg)
    return svg.replace("</style>", f"{rules} text{{font-family:{FONTS}}}</style>", 1)


def _tight(style: str) -> str:
    return re.sub(r"([:;]) ", r"\1", style)
