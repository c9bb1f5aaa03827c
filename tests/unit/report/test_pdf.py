"""The pages of the tests: what stands on each of them, where the links lead, and that data is no markup."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pypdf import PdfReader
from pypdf.generic import DictionaryObject

from drivelab.errors import UserError
from drivelab.report.model import build
from drivelab.report.pdf import cells_of, pages, write_pdf
from drivelab.report.picture import data_uri
from drivelab.report.typeset import typeset
from drivelab.report.view import Cell, Headline, Report

HOSTILE = '#read("pages.typ") *b* _i_ $x$ <script>a</script> \\ @verdict `c` [d] // e'


@pytest.fixture
def report(
    tables: dict[str, pd.DataFrame],
    study: Mapping[str, Any],
    plans: Sequence[Mapping[str, Any]],
    figures: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Report:
    return build(tables, study, plans, figures, "2026-08-02T09:00:00Z")


def read(report: Report) -> PdfReader:
    return PdfReader(BytesIO(typeset(json.dumps(pages(report)))))


_READ: list[PdfReader] = []


@pytest.fixture
def document(report: Report) -> PdfReader:
    """The pages of the report, laid out once for all tests."""
    if not _READ:
        _READ.append(read(report))
    return _READ[0]


def texts(document: PdfReader) -> list[str]:
    """What stands on each page, its head and foot included, on one line."""
    return [" ".join(page.extract_text().split()) for page in document.pages]


def without_spaces(text: str) -> str:
    """As it was before its lines were broken."""
    return "".join(text.split())


def of_tests(report: Report, document: PdfReader) -> Iterator[tuple[str, list[str]]]:
    """Name of each test and what stands on its pages."""
    names = [f"{page.drive} · {page.measurement}" for page in report.pages]
    found = texts(document)
    for name in names:
        yield name, [text for text in found if text.startswith(f"{name} ")]


def test_each_page_of_a_test_says_what_was_tested_how_and_when(report: Report, document: PdfReader) -> None:
    several = 0
    for page, (name, found) in zip(report.pages, of_tests(report, document), strict=True):
        assert found, name
        several += len(found) > 1
        for text in found:
            for word in ("Test run", "Report run", "Model", "Firmware", "Purge", "Preconditioning", "Tracked",
                         "Data pattern", "Active range", "Threads", "Queue depth", "Steady state"):  # fmt: skip
                assert word in text, (name, word)
            assert f"test {page.number} of {len(report.pages)}" in text
            assert page.labels
            assert text.startswith(f"{name} {' '.join(page.labels)} Test run")
    assert several


def test_each_page_has_its_number(report: Report, document: PdfReader) -> None:
    found = texts(document)
    assert len(found) > len(report.pages)
    for number, text in enumerate(found, start=1):
        assert f"{report.title} page {number} of {len(found)}" in text


def test_the_first_page_of_a_test_has_all_facts(report: Report, document: PdfReader) -> None:
    for page, (name, found) in zip(report.pages, of_tests(report, document), strict=True):
        first = without_spaces(found[0])
        for fact in (fact for group in page.groups for fact in group.facts):
            assert without_spaces(f"{fact.name}: {fact.value}") in first, (name, fact)


def test_the_verdict_comes_first_and_leads_to_each_test(report: Report, document: PdfReader) -> None:
    first = without_spaces(texts(document)[0])
    told = (f"{drive.name}: {drive.value}" for drive in report.identities)
    for line in (report.title, *told, *report.lead, *(label.text for label in report.labels)):
        assert without_spaces(line) in first
    targets = {
        str(note.get_object()["/Dest"])
        for page in document.pages
        for note in page.get("/Annots", ())
        if "/Dest" in note.get_object()
    }
    assert {page.id for page in report.pages} <= targets
    assert targets <= set(document.named_destinations)


def test_each_test_has_a_bookmark_and_below_it_its_parts(report: Report, document: PdfReader) -> None:
    tests = [mark.title for mark in document.outline if not isinstance(mark, list)]
    assert tests == ["Verdict", *(f"{page.drive} · {page.measurement}" for page in report.pages)]
    parts = [[part.title for part in mark] for mark in document.outline if isinstance(mark, list)]
    assert [("Steady state" in part, "Figures" in part) for part in parts] == [
        (page.determination is not None, bool(page.figures)) for page in report.pages
    ]


def test_the_tables_of_a_page_are_on_it(report: Report, document: PdfReader) -> None:
    for page, (name, found) in zip(report.pages, of_tests(report, document), strict=True):
        text = without_spaces("".join(found))
        for table in filter(None, (page.findings, page.result, page.determination, *page.tables)):
            assert without_spaces(table.caption) in text, (name, table.caption)
            if not table.collapsed:
                words = [column.text for column in table.columns]
                words += [said for row in table.rows for cell in row for said in (cell.text, cell.verdict, cell.small)]
                for word in (*words, table.note, *table.sources):
                    assert without_spaces(word) in text, (name, table.caption, word)


def test_the_largest_headlines_stand_on_the_first_page_and_the_others_are_counted(report: Report) -> None:
    def headline(place: int, outcome: str) -> Headline:
        return Headline(f"{place} %", float(place), f"comparison {place}", outcome, "", "")

    shown = tuple(headline(place, "better") for place in range(20))
    left_out = (*(headline(place, "worse") for place in range(20, 40)), headline(50, "cannot tell"))
    said = pages(replace(report, headlines=shown, headlines_left_out=left_out))
    assert [one["delta"] for one in said["headlines"]] == [f"{place} %" for place in range(39, 9, -1)]
    assert said["rest"] == (
        "11 of 41 headline comparisons are in the report for the screen only: 10 better, 1 cannot be told or tested."
    )
    assert pages(replace(report, headlines=shown, headlines_left_out=()))["rest"] == ""


def test_what_a_caption_says_of_the_screen_is_not_printed(report: Report) -> None:
    page = next(page for page in report.pages if page.figures)
    caption = "Over size and mix, as columns or, in a chart that answers to the pointer, as a map of colours; the rest."
    figures = (replace(page.figures[0], caption=caption),)
    said = pages(replace(report, pages=(replace(page, figures=figures),)))
    assert said["tests"][0]["figures"][0]["caption"] == "Over size and mix, as columns; the rest."


def test_rows_of_a_long_table_do_not_stand_alone_at_the_end_of_a_page(report: Report) -> None:
    for count in range(40, 90, 10):
        found = pages_with_rows(report, read(longer(report, count)))
        assert all(len(re.findall(r"row\d+", text)) >= 3 for text in found)


def test_a_table_names_the_folders_of_its_fio_jobs(report: Report, document: PdfReader) -> None:
    text = without_spaces("".join(texts(document)))
    tables = [table for page in report.pages for table in page.tables if not table.collapsed]
    told = [(table, cells_of(table)) for table in tables]
    assert any(words for _, words in told)
    for table, words in told:
        places = {place for row in table.rows for cell in row if cell.proof for place in cell.proof.evidence}
        assert bool(words) == bool(places)
        assert without_spaces(words) in text
        assert all(word.rstrip(".") in places for word in words.split() if "/" in word)


def longer(report: Report, rows: int) -> Report:
    """A report of one test whose first result has so many rows."""
    page = next(page for page in report.pages if page.tables)
    table = page.tables[0]
    many = tuple((Cell(f"row{number}"), *table.rows[0][1:]) for number in range(rows))
    return replace(report, pages=(replace(page, figures=(), tables=(replace(table, rows=many),)),))


def pages_with_rows(report: Report, document: PdfReader) -> list[str]:
    return [text for text in texts(document) if re.search(r"row\d", text)]


def test_the_heads_of_a_long_table_return_on_each_page(report: Report) -> None:
    long = longer(report, 200)
    heads = " ".join(column.text for column in long.pages[0].tables[0].columns if column.text)
    found = pages_with_rows(long, read(long))
    assert len(found) > 1
    assert all(without_spaces(heads) in without_spaces(text) for text in found)
    assert sum(len(re.findall(r"row\d+", text)) for text in found) == 200


def test_a_table_of_few_rows_is_whole_on_a_page(report: Report) -> None:
    for notes in range(0, 60, 6):  # wherever on the page it comes
        short = longer(report, 8)
        page = replace(short.pages[0], notes=("Note.",) * notes)
        short = replace(short, pages=(page,))
        assert len(pages_with_rows(short, read(short))) == 1, notes


def test_no_heading_and_no_caption_is_left_at_the_foot_of_a_page(report: Report) -> None:
    long = longer(report, 40)
    caption = long.pages[0].tables[0].caption
    for notes in range(20, 60, 2):  # wherever on the page it comes
        page = replace(long.pages[0], notes=("Note.",) * notes)
        (first,) = [text for text in texts(read(replace(long, pages=(page,)))) if caption in text]
        assert "row0" in first, notes
        assert "Results" in first, notes


def structure(document: PdfReader) -> list[DictionaryObject]:
    """The elements of the document's structure, as who has it read aloud hears them."""
    found: list[DictionaryObject] = []
    waiting: list[Any] = [document.root_object["/StructTreeRoot"]]
    while waiting:
        one = waiting.pop().get_object()
        if isinstance(one, DictionaryObject):
            found.append(one)
            kids = one.get("/K", [])
            waiting += kids if isinstance(kids, list) else [kids]
    return found


def test_the_pages_are_tagged_and_figures_have_their_alternative_text(report: Report, document: PdfReader) -> None:
    elements = structure(document)
    kinds = [element.get("/S") for element in elements]
    assert {"/H1", "/H2", "/Table", "/TH", "/TD", "/Figure", "/TOC", "/Link"} <= set(kinds)
    figures = [figure for page in report.pages for figure in page.figures]
    told = {element.get("/Alt") for element in elements if element.get("/S") == "/Figure"}
    assert {" ".join(figure.alt.split()) for figure in figures} <= {" ".join(str(alt).split()) for alt in told}
    assert document.root_object["/Lang"] == "en"
    assert document.metadata is not None
    assert document.metadata.title == f"{report.title}: pages of the tests"


def test_the_pages_keep_to_the_standard_of_accessible_documents(report: Report) -> None:
    """PDF/UA-1, as far as who writes the file can tell."""
    assert typeset(json.dumps(pages(report)), "ua-1").startswith(b"%PDF-")


def test_the_same_report_gives_the_same_bytes(report: Report) -> None:
    assert typeset(json.dumps(pages(report))) == typeset(json.dumps(pages(report)))


def test_what_the_data_says_is_text_and_no_markup(report: Report) -> None:
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
    # title, foot, contents; then head, label, heading, note, caption and cell, of the test
    assert text.count(without_spaces(HOSTILE)) >= 9


def test_a_figure_that_is_torn_is_named(report: Report, tmp_path: Path) -> None:
    page = next(page for page in report.pages if page.figures)
    torn = replace(page.figures[0], uri=data_uri('<svg xmlns="http://www.w3.org/2000/svg"><g></svg>'))
    broken = replace(report, pages=(replace(page, figures=(torn,)),))
    with pytest.raises(UserError, match=r"cannot be laid out: failed to parse SVG.*delete the figures"):
        write_pdf(pages(broken), tmp_path / "pages.pdf")
    assert not (tmp_path / "pages.pdf").exists()


def test_the_folder_of_the_file_is_made(report: Report, tmp_path: Path) -> None:
    write_pdf(pages(report), tmp_path / "new/pages.pdf")
    assert (tmp_path / "new/pages.pdf").read_bytes().startswith(b"%PDF-")


def test_a_word_without_a_break_stays_on_the_sheet(report: Report) -> None:
    word = "W" * 300
    page, other = report.pages[0], report.pages[0].tables[0]
    table = replace(other, rows=tuple((Cell(word), *row[1:]) for row in other.rows))
    page = replace(page, title=word, notes=(word,), figures=(), tables=(table,))
    places: list[tuple[float, str]] = []

    def seen(text: str, matrix: Sequence[float], line: Sequence[float], *_: object) -> None:
        if "W" * 5 in text:
            places.append((line[4] + matrix[4], text))

    document = read(replace(report, pages=(page,)))
    for sheet in document.pages:
        sheet.extract_text(visitor_text=seen)
    assert len(places) > 3 * 300 / 90
    assert max(text.count("W") for _, text in places) <= 120
    assert "\u200b" not in "".join(figure["svg"] for test in pages(report)["tests"] for figure in test["figures"])
