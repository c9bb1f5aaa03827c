"""The test pages as a PDF, after the report pages of the PTS, with the required facts on every page."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import typst

from drivelab.core.errors import UserError
from drivelab.core.files import put_in_place
from drivelab.core.programs import python, run
from drivelab.report.document import Page, Report
from drivelab.report.view import Banner, Cell, Fact, Figure, Table

_ON_EVERY_PAGE: tuple[tuple[tuple[str, dict[str, str]], ...], ...] = (
    (
        ("Drive under test", {"Model": "", "Serial": "", "Firmware": "", "Capacity": ""}),
        ("Platform", {"Host": "", "CPU": "", "Kernel": "", "fio": ""}),
    ),
    (
        ("Preparation", {"Purge": "", "Preconditioning, workload-independent": "Preconditioning",
                         "Preconditioning, workload-dependent": "Then", "Write cache": ""}),
        ("Steady state", {"Reached": "Steady state", "Window": "Rounds"}),
    ),
    (
        ("Test parameters", {"Tracked": "", "Data pattern": "", "Active range": "", "Threads": "", "Queue depth": "",
                             "Clock": ""}),
    ),
)  # fmt: skip
"""Header facts on each page, in three columns, by group, with their short names; the first page of a test has all."""
_MOST_LETTERS = 84  # two lines
_MOST_REASONS = 6
_MOST_ROWS = 24
"""Rows of the comparison, so that the summary fits on two pages."""
_BREAK = re.compile("[ ·-]")
"""Characters after which a table line may break."""
_MOST_IN_WORD = 40
_LONG_WORD = re.compile(rf"[^\s/·\u2013\u200b-]{{{_MOST_IN_WORD}}}(?=[^\s/·\u2013\u200b-])")
_NO_TEXT = ("svg", "id", "anchor")
_SMALL = 0.85
"""Font size of a cell's second line, relative to its first."""


def write_pdf(content: dict[str, Any], output: Path) -> None:
    """Write the verdict and the test pages, as returned by `pages`, to a self-contained PDF.

    The same pages give the same bytes. Raises UserError for an invalid figure.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    part = output.with_name(f".{output.name}.part")
    command = python("-m", "drivelab.report.pdf", str(part))
    completed = run(command, input=json.dumps(content, ensure_ascii=False))
    if completed.returncode:
        raise UserError(
            f"the PDF pages cannot be laid out: {completed.stderr.strip() or 'out of memory'}; "
            "delete the figures folder and run the study again"
        )
    put_in_place(part, output)


def pages(report: Report) -> dict[str, Any]:
    """Return the content of the pages for the template: texts, tables as lists of rows, figures as SVG."""
    anchors = {page.id for page in report.pages} | {"verdict"}
    study = f"Study {report.study} · " if report.study else ""
    chart, compared = report.chart(), report.verdict_table
    rows = compared.rows if compared else ()
    rest = len(rows) - _MOST_ROWS
    content = {
        "title": report.title,
        "subtitle": f"{study}{report.measured} · reported {report.report_date}",
        "drives": list(map(vars, report.identities)),
        "sentence": report.sentence or report.lead[0],
        "chart": [_figure(chart)] if chart else [],
        "glance": [_summary(report.glance, anchors)] if report.glance else [],
        "lead": report.leads,
        "labels": [banner.label for banner in report.banners],
        "terms": report.verdict_terms,
        "comparison": [_summary(replace(compared, rows=rows[:_MOST_ROWS]), anchors)] if compared else [],
        "rest": f"{rest} more are in the HTML report." if rest > 0 else "",
        "banners": [_banner(banner, len(report.pages)) for banner in report.banners],
        "tests": [_test(page, len(report.pages), anchors) for page in report.pages],
    }
    return {name: _breakable(value) for name, value in content.items()}


def _breakable(content: Any) -> Any:
    """Insert break points into long words, so that they do not run off the sheet."""
    if isinstance(content, str):
        return _LONG_WORD.sub("\\g<0>\u200b", content)
    if isinstance(content, dict):
        return {name: value if name in _NO_TEXT else _breakable(value) for name, value in content.items()}
    return list(map(_breakable, content)) if isinstance(content, list | tuple) else content


def _banner(banner: Banner, pages: int) -> dict[str, Any]:
    omitted = len(banner.reasons) - _MOST_REASONS
    everywhere = len(banner.affected) == pages
    tests = "every test of this report." if everywhere else f"{', '.join(link.text for link in banner.affected)}."
    return {
        "title": banner.title,
        "meaning": banner.meaning,
        "reasons": [*banner.reasons[:_MOST_REASONS], *([f"and {omitted} more"] if omitted > 0 else [])],
        "concerns": f"Affects {tests}" if banner.affected else "",
    }


def _test(page: Page, pages: int, anchors: set[str]) -> dict[str, Any]:
    lists = {"Reduced: differences from the full-length protocol": page.altered, "Notes on this recording": page.notes}
    parts = {"Findings": page.findings, "Verdict": page.result, "Steady state": page.determination}
    tables = [table for table in (*parts.values(), *page.tables) if table]
    origins = (sources_of(*tables), cells_of(*tables))
    dates = [f"{fact.name} {fact.value}" for fact in page.head if fact.name != "Page"]
    return {
        "id": page.id,
        "name": f"{page.drive} · {page.measurement}",
        "title": page.title,
        "origins": " ".join(filter(None, origins)),
        "labels": page.labels,
        "dates": " · ".join([*dates, f"test {page.number} of {pages}"]),
        "header": [list(map(vars, column)) for column in header_block(page)],
        "groups": [{"title": group.title, "facts": list(map(vars, group.facts))} for group in page.groups],
        "lists": [{"title": title, "items": items} for title, items in lists.items() if items],
        "parts": [
            {"title": title, "tables": [_table(table, anchors, origins)]} for title, table in parts.items() if table
        ],
        "figures": [_figure(figure) for figure in page.figures],
        "tables": [_table(table, anchors, origins) for table in page.tables if not table.collapsed],
        "elsewhere": [
            f"{table.caption}: {len(table.rows)} rows, in the HTML report and in the tables of the study."
            for table in page.tables
            if table.collapsed
        ],
    }


def _summary(table: Table, anchors: set[str]) -> dict[str, Any]:
    """Return the content of a table without its origins, which the pages of the tests have."""
    return _table(table, anchors, (sources_of(table), cells_of(table)))


def _table(table: Table, anchors: set[str], test_origins: tuple[str, ...]) -> dict[str, Any]:
    """Return the content of a table, without origins that the head of the test already gives."""
    origins = [line for line in (sources_of(table), cells_of(table)) if line not in test_origins]
    reasons = [f"[{number}] {reason}" for number, reason in enumerate(table.reasons, start=1)]
    return {
        "caption": table.caption,
        "columns": [
            {**vars(column), **_longest(column.text, [row[place] for row in table.rows])}
            for place, column in enumerate(table.columns)
        ],
        "rows": [[_cell(cell, anchors) for cell in row] for row in table.rows],
        "notes": [line for line in (table.note, *reasons, *origins) if line],
    }


def _longest(head: str, cells: list[Cell]) -> dict[str, float]:
    """Return the lengths, in letters, of the longest word and the longest text of a column."""
    sized = [(head, 1.0), *((_text(cell), 1.0) for cell in cells), *((cell.small, _SMALL) for cell in cells)]
    words = max(1.0, *(share * min(_MOST_IN_WORD, max(map(len, _BREAK.split(text)))) for text, share in sized))
    texts = max(share * len(text) for text, share in sized)
    return {"longest_word": words, "longest_text": max(words, min(texts, _MOST_LETTERS))}


def _text(cell: Cell) -> str:
    return f"{cell.text} {cell.verdict}".rstrip()


def _cell(cell: Cell, anchors: set[str]) -> dict[str, str]:
    anchor = cell.anchor if cell.anchor in anchors else ""
    return {"text": _text(cell), "small": cell.small, "tone": cell.tone, "anchor": anchor}


def _figure(figure: Figure) -> dict[str, str | int]:
    svg = unquote(figure.uri.partition(",")[2])  # the inverse of `picture.data_uri`
    one_line = {name: getattr(figure, name).replace("\n", " ") for name in ("title", "caption", "alt")}
    return {**one_line, "width": figure.width, "height": figure.height, "svg": svg}


def sources_of(*tables: Table) -> str:
    """Name the recordings behind tables; empty if there are none."""
    sources = dict.fromkeys(source for table in tables for source in table.sources)
    return f"From {'; '.join(sources)}." if sources else ""


def cells_of(*tables: Table) -> str:
    """Name the folders of the fio jobs behind the tables' numbers; empty if there are none."""
    proofs = (cell.proof for table in tables for row in table.rows for cell in row if cell.proof is not None)
    places = sorted({place for proof in proofs for place in proof.evidence})
    if not places:
        return ""
    if len(places) == 1:
        return f"The fio job is in {places[0]}."
    return f"The fio jobs are in {len(places)} folders: {places[0]} to {places[-1]}."


def header_block(page: Page) -> tuple[tuple[Fact, ...], ...]:
    """Return the facts on each page of a test by column, cut to the available room."""
    facts = {(group.title, fact.name): fact for group in page.groups for fact in group.facts}
    return tuple(
        tuple(
            Fact(short or name, _cut(facts[group, name].value), facts[group, name].tone)
            for group, names in column
            for name, short in names.items()
            if (group, name) in facts
        )
        for column in _ON_EVERY_PAGE
    )


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1].rstrip() + "…"


_TEMPLATE = Path(__file__).parent / "templates/pages.typ"


def typeset(content: str, standard: Literal["1.7", "a-2b", "a-3b"] = "1.7") -> bytes:
    """Return the PDF of the pages; `content` is their JSON. Raises typst.TypstError for invalid figures."""
    return typst.compile(
        _TEMPLATE,
        sys_inputs={"report": content},
        font_paths=[_fonts()],
        ignore_system_fonts=True,
        pdf_standards=standard,
    )


def _fonts() -> Path:
    """Return the folder of matplotlib's fonts, so that pages look the same without system fonts."""
    spec = find_spec("matplotlib")
    assert spec is not None  # a dependency of this project
    assert spec.origin is not None
    return Path(spec.origin).parent / "mpl-data/fonts/ttf"


def main() -> None:
    """Set the JSON from standard input as a PDF, into the file of the first argument."""
    try:
        pdf = typeset(sys.stdin.read())
    except typst.TypstError as error:
        sys.exit(error.message)
    Path(sys.argv[1]).write_bytes(pdf)


if __name__ == "__main__":
    main()
