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
_GROUP = re.compile(r"<g\b[^>]*>|</g>")
_TAG = re.compile(r"<[a-z][^<>]*>")
_FRACTION = re.compile(r"-?\d+\.\d{3,}")
_PLACE = re.compile(r'(?<= [xy]=")-?\d+\.\d{2,}(?=")')
_TICK_LINE = re.compile(r'(<g data-t="[xy]"><path [^>]*?) clip-path="[^"]*"')
"""A line at a tick never leaves its panel."""
_PATH = re.compile(r'(?<= d=")[^"]*')
_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_STRAIGHT = re.compile(r"[ML-](?:[-\d. MLz]*)")
_POINT = re.compile(r"([ML])(-?[\d.]+) (-?[\d.]+)|z")
_NUMBER = re.compile(r"-?[\d.]+")
_LONG = 3
"""A line of at least as many parts leaves out those without a length."""
_SHAPE_PT = 10.0
"""The shape of a marker is around the origin and smaller than this."""
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')
_BREAKS = re.compile(r"\s*\n\s*")
_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")
_STYLE = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_ID_OR_REFERENCE = re.compile(r'( id="|#)([\w.-]+)(?=["\')])')
_COLOUR = re.compile(r"#(\w)\1(\w)\2(\w)\3\b")
_FEWEST_USES = 2
"""Minimum number of uses for which a rule is shorter than the style itself."""


def compact(svg: str) -> str:
    """Return the same picture in fewer bytes.

    Coordinates have tenths of a point, or hundredths in the shapes of markers. Comments, document type, metadata and
    groups without a mark are removed. Repeated styles become classes, ids become short, and the ids of marks
    (`figures.values`) become the attributes data-p, data-m, data-k, data-n, data-c and data-t. Numbers in texts do not
    change. Each picture must be complete, as in an `<img>`: ids and classes of several in one document would clash.
    """
    svg = _GROUP_ID.sub(_marked, _SILENT.sub("", svg))
    svg = _TAG.sub(lambda tag: _BREAKS.sub(" ", _FRACTION.sub(_rounded, _PLACE.sub(_to_a_tenth, tag[0]))), svg)
    svg = _PATH.sub(lambda path: _short(_COMMAND.sub(r"\1", path[0]).strip()), svg)
    svg = _NO_TURN.sub("", _EMPTY_GROUP.sub("", svg)).replace(" font-family: 'DejaVu Sans';", "")
    svg = svg.replace(' xmlns:xlink="http://www.w3.org/1999/xlink"', "").replace(" xlink:href=", " href=")
    return _with_classes(_with_short_ids(_TICK_LINE.sub(r"\1", _BETWEEN_TAGS.sub("><", _without_groups(svg)).strip())))


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


def _to_a_tenth(number: re.Match[str]) -> str:
    return f"{float(number[0]):.1f}".removesuffix(".0")


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _short(path: str) -> str:
    """Return straight lines with relative coordinates; curves stay unchanged."""
    if not _STRAIGHT.fullmatch(path):
        return path
    is_long = path.count("L") >= _LONG
    is_shape = all(abs(float(number)) < _SHAPE_PT for number in _NUMBER.findall(path))
    digits = 2 if is_shape else 1
    parts, before = [], (0, 0)
    for point in _POINT.finditer(path):
        if not point[1]:
            parts.append("z")
            continue
        x, y = (round(round(float(number), digits) * 10**digits) for number in point.groups()[1:])
        right, down = x - before[0], y - before[1]
        if point[1] == "M":
            parts.append("M" + _pair(x, y, digits))
        elif right and down:
            parts.append("l" + _pair(right, down, digits))
        elif right or down or not is_long:
            parts.append(f"v{_decimal(down, digits)}" if down else f"h{_decimal(right, digits)}")
        before = (x, y)
    return "".join(parts)


def _pair(x: int, y: int, digits: int) -> str:
    second = _decimal(y, digits)
    return f"{_decimal(x, digits)}{'' if second.startswith('-') else ' '}{second}"


def _decimal(scaled: int, digits: int) -> str:
    """Return `scaled` / 10**`digits` as the shortest decimal: 1250 with 2 digits is `12.5`, -5 is `-.05`."""
    whole, fraction = divmod(abs(scaled), 10**digits)
    after = f"{fraction:0{digits}d}".rstrip("0")
    return f"{'-' if scaled < 0 else ''}{whole or '' if after else whole}{'.' if after else ''}{after}"


def _without_groups(svg: str) -> str:
    kept: list[str] = []
    open_: list[bool] = []
    end = 0
    for group in _GROUP.finditer(svg):
        tag = group[0]
        if tag == "</g>":
            left_out = open_.pop() if open_ else False
        else:
            left_out = tag in ("<g>", "<g/>")
            if not tag.endswith("/>"):
                open_.append(left_out)
        if left_out:
            kept.append(svg[end : group.start()])
            end = group.end()
    return "".join((*kept, svg[end:]))


def _with_short_ids(svg: str) -> str:
    names = {name: f"i{place}" for place, name in enumerate(dict.fromkeys(_ID.findall(svg)))}
    short = {name: new for name, new in names.items() if len(new) < len(name)}
    return _ID_OR_REFERENCE.sub(lambda use: use[1] + short.get(use[2], use[2]), svg)


def _with_classes(svg: str) -> str:
    svg = _STYLE.sub(lambda style: f' style="{_tight(style[1])}"', svg)
    uses = Counter(_STYLE.findall(svg)).most_common()
    classes = {style: f"c{place}" for place, (style, count) in enumerate(uses) if count >= _FEWEST_USES}
    rules = "".join(f".{name}{{{style}}}" for style, name in classes.items())
    svg = _STYLE.sub(lambda style: f' class="{classes[style[1]]}"' if style[1] in classes else style[0], svg)
    return svg.replace("</style>", f"{rules} text{{font-family:{FONTS}}}</style>", 1)


def _tight(style: str) -> str:
    return _COLOUR.sub(r"#\1\2\3", re.sub(r"([:;]) ", r"\1", style))
