"""The PDF pages: content of each page, targets of links, and data that is never markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from pypdf import PdfReader
from pypdf.generic import DictionaryObject

from drivelab.core.errors import UserError
from drivelab.report.document import Report
from drivelab.report.html import data_uri
from drivelab.report.pdf import cells_of, pages, typeset, write_pdf
from drivelab.report.view import Cell

HOSTILE = '#read("pages.typ") *b* _i_ $x$ <script>a</script> \\ @verdict `c` [d] // e'


def read(report: Report) -> PdfReader:
    return PdfReader(BytesIO(typeset(json.dumps(pages(report)))))


@pytest.fixture(scope="module")
def document(report: Report) -> PdfReader:
    return read(report)


def texts(document: PdfReader) -> list[str]:
    """Return the text of each page, with header and footer, on one line."""
    return [" ".join(page.extract_text().split()) for page in document.pages]


def without_spaces(text: str) -> str:
    """Remove spaces and line breaks."""
    return "".join(text.split())


def of_tests(report: Report, document: PdfReader) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each test and the texts of its pages."""
    names = [f"{page.drive} · {page.measurement}" for page in report.pages]
    all_texts = texts(document)
    for name in names:
        yield name, [text for text in all_texts if text.startswith(f"{name} ")]


def test_each_page_has_the_required_facts(report: Report, document: PdfReader) -> None:
    several = 0
    for page, (name, pages_of_test) in zip(report.pages, of_tests(report, document), strict=True):
        assert pages_of_test, name
        several += len(pages_of_test) > 1
        for text in pages_of_test:
            for word in ("Test run", "Report run", "Model", "Firmware", "Purge", "Preconditioning", "Tracked",
                         "Data pattern", "Active range", "Threads", "Queue depth", "Steady state"):  # fmt: skip
                assert word in text, (name, word)
            assert f"test {page.number} of {len(report.pages)}" in text
            assert page.labels
            assert text.startswith(f"{name} {' '.join(page.labels)} Test run")
    assert several


def test_each_page_has_its_number(report: Report, document: PdfReader) -> None:
    all_texts = texts(document)
    assert len(all_texts) > len(report.pages)
    for number, text in enumerate(all_texts, start=1):
        assert f"{report.title} page {number} of {len(all_texts)}" in text


def test_the_first_page_of_a_test_has_all_facts(report: Report, document: PdfReader) -> None:
    for page, (name, pages_of_test) in zip(report.pages, of_tests(report, document), strict=True):
        first = without_spaces(pages_of_test[0])
        for fact in (fact for group in page.groups for fact in group.facts):
            assert without_spaces(f"{fact.name}: {fact.value}") in first, (name, fact)


def test_a_summary_of_two_pages_comes_first(report: Report, document: PdfReader) -> None:
    """Sentence, three lines and badges are on the first page, then the comparison; then what leads to each test."""
    first, second, third = map(without_spaces, texts(document)[:3])
    drives = (f"{drive.name}: {drive.value}" for drive in report.identities)
    assert report.glance
    assert report.verdict_table
    cells = [cell.text for row in report.glance.rows for cell in row]
    for line in (report.title, *drives, report.sentence, *cells, *(banner.label for banner in report.banners)):
        assert without_spaces(line) in first
    for row in report.verdict_table.rows:
        assert all(without_spaces(cell.text) in first + second for cell in row)
    assert not any(without_spaces(source) in first + second for source in report.verdict_table.sources)
    assert without_spaces(report.banners[0].title) in second + third
    targets = {
        str(note.get_object()["/Dest"])
        for page in document.pages
        for note in page.get("/Annots", ())
        if "/Dest" in note.get_object()
    }
    assert {page.id for page in report.pages} <= targets
    assert targets <= set(document.named_destinations)


def test_each_test_has_a_bookmark_with_its_parts(report: Report, document: PdfReader) -> None:
    tests = [mark.title for mark in document.outline if not isinstance(mark, list)]
    assert tests == ["Verdict", *(f"{page.drive} · {page.measurement}" for page in report.pages)]
    parts = [[part.title for part in mark] for mark in document.outline if isinstance(mark, list)]
    assert [("Steady state" in part, "Figures" in part) for part in parts] == [
        (page.determination is not None, bool(page.figures)) for page in report.pages
    ]


def test_the_tables_of_a_page_are_on_it(report: Report, document: PdfReader) -> None:
    for page, (name, pages_of_test) in zip(report.pages, of_tests(report, document), strict=True):
        text = without_spaces("".join(pages_of_test))
        for table in filter(None, (page.findings, page.result, page.determination, *page.tables)):
            assert without_spaces(table.caption) in text, (name, table.caption)
            if not table.collapsed:
                words = [column.text for column in table.columns]
                words += [text for row in table.rows for cell in row for text in (cell.text, cell.verdict, cell.small)]
                for word in (*words, table.note, *table.sources):
                    assert without_spaces(word) in text, (name, table.caption, word)


def test_a_long_comparison_is_cut_so_that_the_summary_stays_short(report: Report) -> None:
    assert report.verdict_table
    rows = report.verdict_table.rows[:1] * 40
    content = pages(replace(report, verdict_table=replace(report.verdict_table, rows=rows)))
    (comparison,) = content["comparison"]
    assert (len(comparison["rows"]), content["rest"]) == (24, "16 more are in the HTML report.")
    assert pages(report)["rest"] == ""


def test_a_page_never_ends_or_begins_with_a_single_row(report: Report) -> None:
    for count in range(40, 90, 10):
        table_pages = pages_with_rows(report, read(longer(report, count)))
        assert all(len(re.findall(r"row\d+", text)) >= 3 for text in table_pages)


def test_a_table_names_the_folders_of_its_fio_jobs(report: Report, document: PdfReader) -> None:
    text = without_spaces("".join(texts(document)))
    tables = [table for page in report.pages for table in page.tables if not table.collapsed]
    notes = [(table, cells_of(table)) for table in tables]
    assert any(note for _, note in notes)
    for table, note in notes:
        places = {place for row in table.rows for cell in row if cell.proof for place in cell.proof.evidence}
        assert bool(note) == bool(places)
        assert without_spaces(note) in text
        assert all(word.rstrip(".") in places for word in note.split() if "/" in word)


def longer(report: Report, rows: int) -> Report:
    """Return a report of one test whose first table has `rows` rows."""
    page = next(page for page in report.pages if page.tables)
    table = page.tables[0]
    many = tuple((Cell(f"row{number}"), *table.rows[0][1:]) for number in range(rows))
    return replace(report, pages=(replace(page, figures=(), tables=(replace(table, rows=many),)),))


def pages_with_rows(report: Report, document: PdfReader) -> list[str]:
    return [text for text in texts(document) if re.search(r"row\d", text)]


def test_a_long_table_repeats_its_header_on_each_page(report: Report) -> None:
    long = longer(report, 200)
    header = " ".join(column.text for column in long.pages[0].tables[0].columns if column.text)
    table_pages = pages_with_rows(long, read(long))
    assert len(table_pages) > 1
    assert all(without_spaces(header) in without_spaces(text) for text in table_pages)
    assert sum(len(re.findall(r"row\d+", text)) for text in table_pages) == 200


def lowered(report: Report, notes: Sequence[int]) -> Report:
    """Return the report with its only test once for each number of notes: its table begins at different heights."""
    (page,) = report.pages
    return replace(
        report,
        pages=tuple(
            replace(page, id=f"test-{count}", drive=f"drive{count}", notes=("Note.",) * count) for count in notes
        ),
    )


def test_headings_and_captions_stay_with_their_table(report: Report) -> None:
    long = lowered(longer(report, 40), range(20, 60, 2))
    caption = long.pages[0].tables[0].caption
    for name, pages_of_test in of_tests(long, read(long)):
        (first,) = [text for text in pages_of_test if caption in text]
        assert "row0" in first, name
        assert "Results" in first, name


def structure(document: PdfReader) -> list[DictionaryObject]:
    """Return the elements of the document's structure, which screen readers use."""
    elements: list[DictionaryObject] = []
    waiting: list[Any] = [document.root_object["/StructTreeRoot"]]
    while waiting:
        element = waiting.pop().get_object()
        if isinstance(element, DictionaryObject):
            elements.append(element)
            kids = element.get("/K", [])
            waiting += kids if isinstance(kids, list) else [kids]
    return elements


def test_pages_are_tagged_and_figures_have_alternative_text(report: Report, document: PdfReader) -> None:
    elements = structure(document)
    kinds = [element.get("/S") for element in elements]
    assert {"/H1", "/H2", "/Table", "/TH", "/TD", "/Figure", "/TOC", "/Link"} <= set(kinds)
    figures = [figure for page in report.pages for figure in page.figures]
    alts = {element.get("/Alt") for element in elements if element.get("/S") == "/Figure"}
    assert {" ".join(figure.alt.split()) for figure in figures} <= {" ".join(str(alt).split()) for alt in alts}
    assert document.root_object["/Lang"] == "en"
    assert document.metadata is not None
    assert document.metadata.title == f"{report.title}: pages of the tests"


def test_the_pages_conform_to_pdf_ua(report: Report) -> None:
    """Typst checks PDF/UA-1 as far as a writer can."""
    assert typeset(json.dumps(pages(report)), "ua-1").startswith(b"%PDF-")


def test_the_same_report_gives_the_same_bytes(report: Report) -> None:
    assert typeset(json.dumps(pages(report))) == typeset(json.dumps(pages(report)))


def test_data_is_never_markup(report: Report) -> None:
    page = next(page for page in report.pages if page.tables)
    table = page.tables[0]
    rows = ((Cell(HOSTILE, small=HOSTILE), *table.rows[0][1:]), *table.rows[1:])
    hostile = replace(
        page, drive=HOSTILE, labels=(HOSTILE,), notes=(HOSTILE,), tables=(replace(table, caption=HOSTILE, rows=rows),)
    )
    document = read(replace(report, title=HOSTILE, pages=(hostile,)))
    assert document.metadata is not None
    assert document.metadata.title == f"{HOSTILE}: pages of the tests"
    assert document.outline[1].title == f"{HOSTILE} · {page.measurement}"
    text = without_spaces("".join(texts(document)))
    # title, footer, contents; then header, label, heading, note, caption and cell of the test
    assert text.count(without_spaces(HOSTILE)) >= 9


def test_an_invalid_figure_is_reported(report: Report, tmp_path: Path) -> None:
    page = next(page for page in report.pages if page.figures)
    torn = replace(page.figures[0], uri=data_uri('<svg xmlns="http://www.w3.org/2000/svg"><g></svg>'))
    broken = replace(report, pages=(replace(page, figures=(torn,)),))
    with pytest.raises(UserError, match=r"cannot be laid out: failed to parse SVG.*delete the figures"):
        write_pdf(pages(broken), tmp_path / "pages.pdf")
    assert not (tmp_path / "pages.pdf").exists()


def test_a_long_word_stays_on_the_page(report: Report) -> None:
    word = "W" * 300
    page, other = report.pages[0], report.pages[0].tables[0]
    table = replace(other, rows=tuple((Cell(word), *row[1:]) for row in other.rows))
    page = replace(page, title=word, notes=(word,), figures=(), tables=(table,))
    places: list[tuple[float, str]] = []

    def record_place(text: str, matrix: Sequence[float], line: Sequence[float], *_: object) -> None:
        if "W" * 5 in text:
            places.append((line[4] + matrix[4], text))

    document = read(replace(report, pages=(page,)))
    for sheet in document.pages:
        sheet.extract_text(visitor_text=record_place)
    assert len(places) > 3 * 300 / 90
    assert max(text.count("W") for _, text in places) <= 120
    assert "\u200b" not in "".join(figure["svg"] for test in pages(report)["tests"] for figure in test["figures"])
