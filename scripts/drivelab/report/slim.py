"""SVG as little as it can be and still look the same: a report has hundreds of them, and most of one is repetition."""

from __future__ import annotations

import re
from collections import Counter
from urllib.parse import quote

from markupsafe import Markup

_SILENT = re.compile(r"<\?xml.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*(\[[^\]]*\])?[^>]*>|<metadata>.*?</metadata>", re.DOTALL)
_GROUP = re.compile(r"<g\b[^>]*>|</g>")
_STYLE = re.compile(r' style="([^"]*)"')
_ID = re.compile(r' id="([^"]+)"')
_ID_OR_REFERENCE = re.compile(r'( id="|#)([\w.-]+)(?=["\')])')
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r"=\"([^\"']*)\"")
_BETWEEN_TAGS = re.compile(r">\s*\n\s*<")
_SAFE = " !$()*+,-./:;=?@[]^_`{|}~'"
"""What needs no escape in a data URI, nor in an attribute between double quotes; `&`, `<`, `>`, `"`, `#`, `%` do."""
_FEWEST_USES = 3
"""Of a style, for a rule to be shorter than saying it each time."""


def data_uri(svg: str) -> Markup:
    """An SVG as a data URI, which may stand between double quotes in HTML as it is.

    Percent-encoded, because Base64 of text is longer by a fifth, and does not shrink when the report is packed.
    """
    in_single_quotes = _TAG.sub(lambda tag: _ATTRIBUTE.sub(r"='\1'", tag[0]), svg)
    escaped = quote(in_single_quotes.replace("\n", " "), safe=_SAFE)
    return Markup(f"data:image/svg+xml;charset=utf-8,{escaped}")  # `_SAFE` has nothing that HTML would read as its own


def slim(svg: str) -> str:
    """The same picture without what does not show.

    Left out are comments, document type, metadata and groups that say nothing; styles that return become classes, ids
    short. The picture must stand by itself, as in an `<img>`: ids and classes would clash with those of others.
    """
    bare = _BETWEEN_TAGS.sub("><", _without_groups(_SILENT.sub("", svg))).strip()
    return _with_classes(_with_short_ids(bare))


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
    short = {name: f"i{place}" for place, name in enumerate(dict.fromkeys(_ID.findall(svg)))}
    return _ID_OR_REFERENCE.sub(lambda found: found[1] + short.get(found[2], found[2]), svg)


def _with_classes(svg: str) -> str:
    uses = Counter(_STYLE.findall(svg)).most_common()
    classes = {style: f"c{place}" for place, (style, count) in enumerate(uses) if count >= _FEWEST_USES}
    if not classes or " class=" in svg:
        return svg
    rules = "".join(f".{name}{{{_tight(style)}}}" for style, name in classes.items())
    short = _STYLE.sub(lambda one: f' class="{classes[one[1]]}"' if one[1] in classes else one[0], svg)
    return re.sub(r"(<svg\b[^>]*>)", lambda root: f"{root[1]}<style>{rules}</style>", short, count=1)


def _tight(style: str) -> str:
    return re.sub(r"([:;]) ", r"\1", style)
