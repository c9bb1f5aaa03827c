"""The report as one HTML file that needs nothing else: no network, no script, no font."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.report.view import Report

_TEMPLATES = Path(__file__).parent / "templates"


def render(report: Report) -> str:
    """HTML of a report; every text in it is escaped."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = (_TEMPLATES / "report.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup(style),  # our own file: no part of it is data
        style_digest=digest,
    )
