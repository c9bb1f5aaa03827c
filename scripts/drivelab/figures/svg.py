"""SVG as matplotlib writes it, made smaller: a report has hundreds of them, and most of one is repetition."""

from __future__ import annotations

import re
from collections import Counter

FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Verdana has the widths of DejaVu Sans, for readers who have not got that."""
_SILENT = re.compile(r"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(\[[^\]]*\])?[^>]*>|<metadata>.*?</metadata>", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_EMPTY_GROUP = re.compile(r"<g[^<>]*>\s*</g>")
_GROUP = re.compile(r"<g\b[^>]*>|</g>")
_TAG = re.compile(r"<[a-z][^<>]*>")
_FRACTION = re.compile(r"-?\d+\.\d{3,}")
_PATH = re.compile(r'(?<= d=")[^"]*')
_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')
_BREAKS = re.compile(r"\s*\n\s*")
_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")
_STYLE = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_ID_OR_REFERENCE = re.compile(r'( id="|#)([\w.-]+)(?=["\')])')
_FEWEST_USES = 3
"""Of a style, for a rule to be shorter than saying it each time."""


def compact(svg: str) -> str:
    """The same picture with coordinates to a hundredth of a point and fonts for every reader, without what no one sees.

    Left out are comments, document type, metadata and groups that say nothing; styles that return become classes, ids
    short. Numbers in its texts stay as they are. The picture must stand by itself, as in an `<img>`: ids and classes
    would clash with those of others.
    """
    svg = _GROUP_ID.sub("<g", _SILENT.sub("", svg))
    svg = _TAG.sub(lambda tag: _BREAKS.sub(" ", _FRACTION.sub(_rounded, tag[0])), svg)
    svg = _PATH.sub(lambda path: _COMMAND.sub(r"\1", path[0]).strip(), svg)
    svg = _NO_TURN.sub("", _EMPTY_GROUP.sub("", svg)).replace(" font-family: 'DejaVu Sans';", "")
    return _with_classes(_with_short_ids(_BETWEEN_TAGS.sub("><", _without_groups(svg)).strip()))


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


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
