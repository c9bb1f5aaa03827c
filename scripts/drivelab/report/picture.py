"""Figures as data URIs: an SVG in an <img> runs no script and fetches nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from drivelab.core.errors import UserError
from drivelab.figures.base.svg import values_of, without_values
from drivelab.report.view import Figure

_VIEW_BOX = re.compile(r"<svg\b[^>]*\bviewBox=[\"']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r"=\"([^\"']*)\"")
_UNSAFE = re.compile(r"[^\w !$()*+,\-./:;<=>?@\[\]^`{|}~']+", re.ASCII)
"""Characters that need an escape in a data URI or a double-quoted attribute, such as `&`, `"`, `#`, `%`."""


def picture(figure: Mapping[str, Any], several: bool = False) -> Figure:
    """Return a figure of the report from {drive, measurement, recording, name, title, caption, svg}.

    `svg` is text or a path. The values that the SVG carries become the figure's `values`.
    The title names the recording if a page has `several`, and the test if the figure has no drive.
    Raises UserError for a file that is missing or not an SVG.
    """
    given = figure["svg"]
    svg = given if isinstance(given, str) and given.lstrip().startswith("<") else _read(Path(given))
    if "<svg" not in svg:
        raise UserError(f"figure '{figure['name']}' is not an SVG; delete {given!s:.100} and run the study again")
    box = _VIEW_BOX.search(svg)
    width, height = (round(float(box[1])), round(float(box[2]))) if box else (640, 400)
    part_of = (figure.get("recording") if several else None) if figure.get("drive") else figure.get("measurement")
    title = f"{figure['title']}, {part_of}" if part_of else str(figure["title"])
    caption = str(figure.get("caption") or "")
    named = f"{title} ({figure['drive']}, {figure['measurement']})" if figure.get("drive") else title
    return Figure(
        title=title,
        caption=caption,
        alt=named,
        uri=data_uri(without_values(svg)),
        width=width,
        height=height,
        values=values_of(svg),
        recording=str(figure.get("recording") or figure.get("trace") or ""),
        group="" if figure.get("drive") or figure.get("trace") else str(figure.get("measurement") or ""),
    )


def data_uri(svg: str) -> Markup:
    """Return an SVG as a data URI that is safe in a double-quoted HTML attribute.

    It is percent-encoded: Base64 of text is a fifth longer and does not shrink when the report is compressed.
    """
    in_single_quotes = _TAG.sub(lambda tag: _ATTRIBUTE.sub(r"='\1'", tag[0]), svg)
    escaped = _UNSAFE.sub(lambda unsafe: quote(unsafe[0]), in_single_quotes.replace("\n", " "))
    return Markup(f"data:image/svg+xml;charset=utf-8,{escaped}")  # only _UNSAFE has HTML markup for an attribute


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: cannot be read as a figure; delete it and run the study again") from None
