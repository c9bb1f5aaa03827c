"""The report as one self-contained HTML file: no network, no font, readable without scripts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from drivelab.report.downloads import MOST_BYTES
from drivelab.report.embedded import SCRIPTS, encoded, hash_source, packed, packed_json
from drivelab.report.evidence import proofs_of
from drivelab.report.numbers import size
from drivelab.report.view import Proof, Report

_TEMPLATES = Path(__file__).parent / "templates"


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
    script = "".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in SCRIPTS)
    environment.filters.update(packed=packed, encoded=encoded, shown=_shown, size=size)
    environment.globals.update(proofs=proofs, most_bytes=MOST_BYTES)
    return environment.get_template("report.html.j2").render(
        report=report,
        style=Markup((_TEMPLATES / "report.css").read_text(encoding="utf-8")),  # drivelab's file, no data in it
        script=Markup(script),  # likewise
        script_sources=hash_source(script),
        evidence=packed_json({"proofs": [_packed(proof, proofs) for proof in proofs], "jobs": dict(jobs or {})}),
    )


def _packed(proof: Proof, numbers: Mapping[Proof, int]) -> list[Any]:
    """Return a proof for the script: title, facts, recordings, evidence, numbers of its parts."""
    return [proof.title, proof.facts, proof.recordings, proof.evidence, [numbers[part] for part in proof.parts]]


def _shown(value: float) -> str:
    """Format a number with all digits, for the attribute used in sorting."""
    return repr(float(value)).removesuffix(".0")
