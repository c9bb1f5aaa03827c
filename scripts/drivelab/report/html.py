"""The report as one self-contained HTML file: no network, no font, readable without scripts."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.core.errors import UserError
from drivelab.figures.base.svg import values_of, without_values
from drivelab.figures.registry import ALL
from drivelab.replay.evaluation.metrics import SCORE_FORMULA
from drivelab.report.document import Figure, Report
from drivelab.report.downloads import MOST_BYTES
from drivelab.report.numbers import size
from drivelab.report.sections.proof import proofs_of

_VIEW_BOX = re.compile(r"<svg\b[^>]*\bviewBox=[\"']\s*[-\d.]+[\s,]+[-\d.]+[\s,]+([\d.]+)[\s,]+([\d.]+)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_ATTRIBUTE = re.compile(r"=\"([^\"']*)\"")
_UNSAFE = re.compile(r"[^\w !$()*+,\-./:;<=>?@\[\]^`{|}~']+", re.ASCII)
"""Characters that need an escape in a data URI or a double-quoted attribute, such as `&`, `"`, `#`, `%`."""


def picture(figure: Mapping[str, Any], several: bool = False) -> Figure:
    """Return a figure of the report from {drive, measurement, recording, trace}, if known, and `figure_file`.

    The values that the SVG carries become the figure's `values`. The title names the recording if a page has
    `several`, and the test if the figure has no drive. Raises UserError for what is not an SVG.
    """
    svg = figure["svg"]
    if "<svg" not in svg:
        raise UserError(f"figure '{figure['name']}' is not an SVG; delete the figures folder and run the study again")
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


def figure_file(path: Path) -> dict[str, str]:
    """Return {name, title, caption, svg} of a figure's SVG file, which has the name of its kind."""
    kind = ALL[path.stem]
    return {"name": path.stem, "title": kind.title, "caption": kind.caption, "svg": path.read_text(encoding="utf-8")}


def data_uri(svg: str) -> Markup:
    """Return an SVG as a data URI that is safe in a double-quoted HTML attribute.

    It is percent-encoded: Base64 of text is a fifth longer and does not shrink when the report is compressed.
    """
    in_single_quotes = _TAG.sub(lambda tag: _ATTRIBUTE.sub(r"='\1'", tag[0]), svg)
    escaped = _UNSAFE.sub(lambda unsafe: quote(unsafe[0]), in_single_quotes.replace("\n", " "))
    return Markup(f"data:image/svg+xml;charset=utf-8,{escaped}")  # only _UNSAFE has HTML markup for an attribute


_SCRIPTS = ("report.js", "charts.js")
"""Templates that make up the one script of a report."""


def encoded(data: bytes) -> str:
    """Encode bytes in base64."""
    return base64.b64encode(data).decode()


def packed(text: str) -> str:
    """Pack text as gzip in base64, for `DecompressionStream`; the result is deterministic."""
    return encoded(gzip.compress(text.encode(), mtime=0))


_TEMPLATES = Path(__file__).parent / "templates"


def render(report: Report, jobs: Mapping[str, str] | None = None) -> str:
    """Return the HTML of a report with all texts escaped.

    `jobs` gives the text of fio jobs by path, from `drivelab.report.sections.proof.fio_jobs`.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    proofs = proofs_of(report)
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    environment.filters.update(packed=packed, encoded=encoded, size=size)
    environment.filters["shown"] = lambda value: repr(float(value)).removesuffix(".0")  # all digits, for sorting
    environment.globals.update(proofs=proofs, most_bytes=MOST_BYTES, score_formula=SCORE_FORMULA)
    numbered = [
        [proof.title, proof.facts, proof.recordings, proof.evidence, [proofs[part] for part in proof.parts]]
        for proof in proofs
    ]
    evidence = {"proofs": numbered, "jobs": dict(jobs or {})}
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # drivelab's file, no data in it
        script=Markup(script),  # likewise
        script_sources=f"'sha256-{encoded(hashlib.sha256(script.encode()).digest())}'",
        evidence=packed(json.dumps(evidence, ensure_ascii=False, separators=(",", ":"))),
    )
