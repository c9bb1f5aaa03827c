"""The report as one self-contained HTML file: no network, no font, readable without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.report.downloads import MOST_BYTES
from drivelab.report.embedded import encoded, hash_source, packed, packed_json, plotly
from drivelab.report.evidence import proofs_of
from drivelab.report.numbers import size
from drivelab.report.view import Figure, Proof, Report

_TEMPLATES = Path(__file__).parent / "templates"
_SCRIPTS = ("report.js", "charts.js")


def render(report: Report, jobs: Mapping[str, str] | None = None) -> str:
    """Return the HTML of a report with all texts escaped.

    `jobs` gives the text of fio jobs by path, from `drivelab.report.evidence.fio_jobs`.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    proofs = proofs_of(report)
    charts = any(one.chart for one in _figures(report))
    plotly_packed, plotly_source = plotly() if charts else ("", "")
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    environment.filters.update(packed=packed, encoded=encoded, shown=_shown, size=size)
    environment.globals.update(proofs=proofs, most_bytes=MOST_BYTES)
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # drivelab's file, no data in it
        script=Markup(script),  # likewise
        script_sources=f"{hash_source(script)} {plotly_source}".strip(),
        plotly=plotly_packed,
        evidence=packed_json({"proofs": [_packed(proof, proofs) for proof in proofs], "jobs": dict(jobs or {})}),
    )


def _figures(report: Report) -> list[Figure]:
    of_pages = (figure for page in report.pages for figure in page.figures)
    return [*of_pages, *report.comparison_figures, *report.trace_figures]


def _packed(proof: Proof, numbers: Mapping[Proof, int]) -> list[Any]:
    """Return a proof for the script: title, facts, recordings, evidence, numbers of its parts."""
    return [proof.title, proof.facts, proof.recordings, proof.evidence, [numbers[part] for part in proof.parts]]


def _shown(value: float) -> str:
    """Format a number with all digits, for the attribute used in sorting."""
    return repr(float(value)).removesuffix(".0")
