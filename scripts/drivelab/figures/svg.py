"""SVG as matplotlib writes it, made smaller: what no reader sees is left out."""

from __future__ import annotations

import re

FONTS = "'DejaVu Sans', Verdana, sans-serif"
"""Verdana has the widths of DejaVu Sans, for readers who have not got that."""
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_GROUP_ID = re.compile(r'<g id="[^"]*"')
_EMPTY_GROUP = re.compile(r"<g[^<>]*>\s*</g>")
_TAG = re.compile(r"<[a-z][^<>]*>")
_FRACTION = re.compile(r"-?\d+\.\d{3,}")
_PATH = re.compile(r'(?<= d=")[^"]*')
_COMMAND = re.compile(r"\s*([A-Za-z])\s*")
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*"')
_BREAKS = re.compile(r"\s*\n\s*")


def compact(svg: str) -> str:
    """The same picture with coordinates to a hundredth of a point and fonts for every reader.

    Metadata and the ids of groups, which nothing refers to, are left out. Numbers in its texts stay as they are.
    """
    svg = _GROUP_ID.sub("<g", _COMMENT.sub("", _METADATA.sub("", svg)))
    svg = _TAG.sub(lambda tag: _BREAKS.sub(" ", _FRACTION.sub(_rounded, tag[0])), svg)
    svg = _PATH.sub(lambda path: _COMMAND.sub(r"\1", path[0]).strip(), svg)
    svg = _NO_TURN.sub("", _EMPTY_GROUP.sub("", svg)).replace(" font-family: 'DejaVu Sans';", "")
    return _BREAKS.sub("\n", svg.replace("</style>", f" text {{font-family: {FONTS}}}</style>", 1))


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
