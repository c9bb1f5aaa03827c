"""The pages of the tests as a PDF after the report pages of the PTS: what a page must say stands on every page."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from weasyprint import HTML, Document
from weasyprint.urls import URLFetcher, URLFetcherResponse

from drivelab.report.view import Fact, Page, Report, Table

_TEMPLATES = Path(__file__).parent / "templates"
_ON_EVERY_PAGE = (
    (
        ("Drive under test", ("Model", "Serial", "Firmware", "Capacity")),
        ("Platform", ("Host", "CPU", "Kernel", "fio")),
    ),
    (
        (
            "Preparation",
            ("Purge", "Preconditioning, workload-independent", "Preconditioning, workload-dependent", "Write cache"),
        ),
        ("Steady state", ("Reached", "Window")),
    ),
    (("Test parameters", ("Tracked", "Data pattern", "Active range", "Threads", "Queue depth", "Clock")),),
)
"""Facts of the header block that each page carries, in three columns, by group; the first page of a test has them all
in full."""
_SHORT = {
    "Preconditioning, workload-independent": "Preconditioning",
    "Preconditioning, workload-dependent": "Then",
    "Reached": "Steady state",
    "Window": "Rounds",
}
_MOST_LETTERS = 84  # two lines
_MOST_REASONS = 6
_MOST_HEADLINES = 30
_MOST_WHOLE_ROWS = 14
"""A table of no more rows is not torn apart by the end of a page."""
_FACES = (
    ("DejaVuSans.ttf", "normal", "normal"),
    ("DejaVuSans-Bold.ttf", "bold", "normal"),
    ("DejaVuSans-Oblique.ttf", "normal", "italic"),
)


def write_pdf(report: Report, output: Path) -> None:
    """Write the verdict and the pages of the tests; the file needs no font and no network."""
    output.parent.mkdir(parents=True, exist_ok=True)
    laid_out(report).write_pdf(output, pdf_tags=True)  # headings, tables and figures for who has them read aloud


def laid_out(report: Report) -> Document:
    """The pages as WeasyPrint has them before it writes them."""
    return HTML(string=pages_html(report), url_fetcher=_Embedded()).render()


def pages_html(report: Report) -> str:
    """What is laid out on the pages; every text in it is escaped."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("pages.html.j2").render(
        report=report,
        blocks={page.id: header_block(page) for page in report.pages},
        anchors={page.id for page in report.pages} | {"verdict"},
        cells_of=cells_of,
        most_whole_rows=_MOST_WHOLE_ROWS,
        most_reasons=_MOST_REASONS,
        most_headlines=_MOST_HEADLINES,
        style=Markup((_TEMPLATES / "pages.css").read_text(encoding="utf-8")),  # our own file: no part of it is data
        fonts=Markup(_font_faces()),  # likewise
    )


def cells_of(table: Table) -> str:
    """Where the fio jobs are that the numbers of a table stand on, in words; empty where there are none."""
    proofs = (cell.proof for row in table.rows for cell in row if cell.proof is not None)
    places = list(dict.fromkeys(place for proof in proofs for place in proof.evidence))
    if not places:
        return ""
    if len(places) == 1:
        return f"The fio job is in {places[0]}."
    return f"The fio jobs are in {len(places)} folders: {places[0]} to {places[-1]}."


def header_block(page: Page) -> tuple[tuple[Fact, ...], ...]:
    """The facts that stand on each page of a test by column, cut to what has room there."""
    found = {(group.title, fact.name): fact for group in page.groups for fact in group.facts}
    return tuple(
        tuple(
            Fact(_SHORT.get(name, name), _cut(found[group, name].value), found[group, name].tone)
            for group, names in column
            for name in names
            if (group, name) in found
        )
        for column in _ON_EVERY_PAGE
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1].rstrip() + "…"


def _fonts() -> Path:
    """Fonts that matplotlib brings, so that the pages look the same where the system has none."""
    spec = find_spec("matplotlib")
    assert spec is not None  # a dependency of this project
    assert spec.origin is not None
    return Path(spec.origin).parent / "mpl-data/fonts/ttf"


def _font_faces() -> str:
    return "".join(
        f'@font-face{{font-family:"DejaVu Sans";src:url("{(_fonts() / name).as_uri()}");'
        f"font-weight:{weight};font-style:{slant}}}"
        for name, weight, slant in _FACES
    )


class _Embedded(URLFetcher):  # type: ignore[misc]
    """Gives out figures, which are in the page itself, and the fonts; nothing is fetched from elsewhere."""

    def fetch(self, url: str, headers: Any = None) -> URLFetcherResponse:
        place = urlparse(url)
        if place.scheme == "data" or (place.scheme == "file" and Path(unquote(place.path)).parent == _fonts()):
            return super().fetch(url, headers)
        raise ValueError(f"a page of the report refers to {url:.80}, which is not part of it")
