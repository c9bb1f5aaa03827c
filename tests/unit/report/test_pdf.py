"""The pages of the tests: what stands on each of them, where the links lead, and that nothing is fetched."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.request import OpenerDirector

import pandas as pd
import pytest

from drivelab.report.model import build
from drivelab.report.pdf import cells_of, laid_out, pages_html, write_pdf
from drivelab.report.view import Report


@pytest.fixture
def report(
    tables: dict[str, pd.DataFrame],
    study: Mapping[str, Any],
    plans: Sequence[Mapping[str, Any]],
    figures: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Report:
    return build(tables, study, plans, figures, "2026-08-02T09:00:00Z")


_LAID_OUT: list[Any] = []


@pytest.fixture
def document(report: Report) -> Any:
    """The pages of the report, laid out once for all tests."""
    if not _LAID_OUT:
        _LAID_OUT.append(laid_out(report))
    return _LAID_OUT[0]


def texts(document: Any) -> list[str]:
    """What stands on each page, its margins included."""
    return [
        " ".join(box.text for box in page._page_box.descendants() if getattr(box, "text", None))
        for page in document.pages
    ]


def test_each_page_of_a_test_says_what_was_tested_how_and_when(report: Report, document: Any) -> None:
    pages = texts(document)
    total = len(pages)
    assert total > len(report.pages)
    of_tests = [text for text in pages if "Test run" in text]
    assert len(of_tests) >= len(report.pages)
    for text in of_tests:
        for name in ("Report run", "Model", "Firmware", "Purge", "Preconditioning", "Tracked", "Data pattern",
                     "Active range", "Threads", "Queue depth", "Steady state"):  # fmt: skip
            assert name in text, name
        assert f"of {len(report.pages)} · page" in text
    for number, text in enumerate(pages, start=1):
        assert f"page {number} of {total}" in text


def test_the_verdict_comes_first_and_leads_to_each_test(report: Report, document: Any) -> None:
    first = texts(document)[0]
    assert report.title in first
    assert all(line in first for line in report.lead)
    targets = {link[1] for page in document.pages for link in page.links if link[0] == "internal"}
    assert {page.id for page in report.pages} <= targets
    anchors = {name for page in document.pages for name in page.anchors}
    assert targets <= anchors


def test_each_test_has_a_bookmark(report: Report, document: Any) -> None:
    marks = [label for label, *_ in document.make_bookmark_tree()]
    assert marks == ["Verdict", *(f"{page.drive} · {page.measurement}" for page in report.pages)]


def test_the_tables_and_figures_of_a_page_are_on_it(report: Report, document: Any) -> None:
    html = pages_html(report)
    text = " ".join(texts(document))
    page = next(one for one in report.pages if one.determination)
    assert page.determination
    for row in page.determination.rows:
        assert all(word in text for cell in row for word in cell.text.split())
    assert html.count("<img ") == sum(len(page.figures) for page in report.pages)


def test_a_table_names_the_folders_of_its_fio_jobs(report: Report, document: Any) -> None:
    text = "".join(texts(document)).replace(" ", "")
    tables = [table for page in report.pages for table in page.tables if not table.collapsed]
    told = [(table, cells_of(table)) for table in tables]
    assert any(words for _, words in told)
    for table, words in told:
        places = {place for row in table.rows for cell in row if cell.proof for place in cell.proof.evidence}
        assert bool(words) == bool(places)
        assert words.replace(" ", "") in text
        assert all(word.rstrip(".") in places for word in words.split() if "/" in word)


def test_a_table_of_few_rows_is_whole_on_a_page(report: Report, document: Any) -> None:
    found = 0
    for page in report.pages:
        if page.determination and len(page.determination.rows) <= 14:
            caption = page.determination.caption.split()
            last = page.determination.rows[-1][0].text.split()
            assert any(all(word in text.split() for word in (*caption, *last)) for text in texts(document))
            found += 1
    assert found


def test_the_pages_are_tagged(report: Report, tmp_path: Path) -> None:
    write_pdf(report, tmp_path / "pages.pdf")
    packed = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", (tmp_path / "pages.pdf").read_bytes(), re.DOTALL)
    structure = b"".join(zlib.decompressobj().decompress(one) for one in packed if one.startswith(b"\x78"))
    for mark in (b"/StructTreeRoot", b"/S /H2", b"/S /Table", b"/S /Figure"):
        assert mark in structure or mark.replace(b" ", b"") in structure, mark


def test_what_a_table_says_is_text_and_no_markup(
    tables: dict[str, pd.DataFrame], study: dict[str, Any], plans: list[dict[str, Any]]
) -> None:
    study["title"] = '<script>x</script><img src="http://example.com/a.png">'
    html = pages_html(build(tables, study, plans, [], "2026-08-02T09:00:00Z"))
    assert "<script>" not in html
    assert "<img" not in html


def test_nothing_is_fetched_from_elsewhere(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    opened: list[str] = []
    real: Callable[..., Any] = OpenerDirector.open

    def watched(self: OpenerDirector, request: Any, *rest: Any, **named: Any) -> Any:
        opened.append(getattr(request, "full_url", str(request)))
        return real(self, request, *rest, **named)

    monkeypatch.setattr(OpenerDirector, "open", watched)
    write_pdf(report, tmp_path / "new/pages.pdf")
    assert (tmp_path / "new/pages.pdf").read_bytes().startswith(b"%PDF-")
    assert opened, "no font was opened: this test would see nothing"
    assert all(url.startswith(("data:", "file:")) for url in opened)
    assert not [line for line in caplog.messages if "Failed" in line]
