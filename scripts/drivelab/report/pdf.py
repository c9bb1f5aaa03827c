"""The pages of the tests as a PDF after the report pages of the PTS: what a page must say stands on every page."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from drivelab.errors import UserError
from drivelab.parent import run
from drivelab.report.outcome import TONES
from drivelab.report.view import Banner, Cell, Fact, Figure, Headline, Page, Report, Table, outcomes

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
_BREAK = re.compile("[ ·-]")
"""Where a line of a table may be broken."""
_MOST_IN_WORD = 40
_LONG_WORD = re.compile(rf"[^\s/·\u2013\u200b-]{{{_MOST_IN_WORD}}}(?=[^\s/·\u2013\u200b-])")
_OF_CHARTS = re.compile(r" or, in a chart that answers to the pointer, [^;.,]*")
"""What a caption says of how the figure looks on the screen."""
_NO_TEXT = ("svg", "id", "anchor")
_SMALL = 0.85
"""Size of the second line of a cell, to that of the first."""


def write_pdf(said: dict[str, Any], output: Path) -> None:
    """Write the verdict and the pages of the tests, what `pages` returns; the file needs no font and no network.

    The same pages give the same bytes. Raises UserError for a figure that cannot be drawn.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "drivelab.report.typeset", str(output)]
    done = run(command, input=json.dumps(said, ensure_ascii=False))
    if done.returncode:
        raise UserError(
            f"the pages of the tests cannot be laid out: {done.stderr.strip() or 'no memory was left'}; "
            "delete the figures and let the workflow draw them again"
        )


def pages(report: Report) -> dict[str, Any]:
    """What the pages say, for the template: texts, tables as lists of rows, figures as SVG."""
    anchors = {page.id for page in report.pages} | {"verdict"}
    shown, rest = _headlines(report)
    study = f"Study {report.study} · " if report.study else ""
    said = {
        "title": report.title,
        "subtitle": f"{study}{report.measured} · reported {report.report_date}",
        "drives": _facts(report.identities),
        "lead": report.lead,
        "labels": [label.text for label in report.labels],
        "terms": report.verdict_terms,
        "headlines": [
            {
                "delta": one.delta,
                "tone": one.outcome.replace(" ", "-"),
                "sentence": one.sentence,
                "context": one.context,
                "anchor": one.anchor if one.anchor in anchors else "",
            }
            for one in shown
        ],
        "rest": rest,
        "banners": [_banner(banner, len(report.pages)) for banner in report.banners],
        "tests": [_test(page, len(report.pages), anchors) for page in report.pages],
    }
    return {name: _breakable(value) for name, value in said.items()}


def _headlines(report: Report) -> tuple[list[Headline], str]:
    """Those that are better or worse, the largest where they are too many, and how many others there are."""
    every = [*report.headlines, *report.headlines_left_out]
    decided = [one for one in every if one.outcome in TONES]
    if len(decided) > _MOST_HEADLINES:
        decided = sorted(decided, key=lambda one: -abs(one.delta_pct or 0))[:_MOST_HEADLINES]
    others = [one for one in every if one not in decided]
    if not others:
        return decided, ""
    told = f"{len(others)} of {len(every)} headline comparisons are in the report for the screen only"
    return decided, f"{told}: {outcomes(others)}."


def _breakable(said: Any) -> Any:
    """The same with places in long words where a line may be broken, else they would run off the sheet."""
    if isinstance(said, str):
        return _LONG_WORD.sub("\\g<0>\u200b", said)
    if isinstance(said, dict):
        return {name: value if name in _NO_TEXT else _breakable(value) for name, value in said.items()}
    return [_breakable(one) for one in said] if isinstance(said, list | tuple) else said


def _banner(banner: Banner, pages: int) -> dict[str, Any]:
    left_out = len(banner.reasons) - _MOST_REASONS
    everywhere = len(banner.affected) == pages
    concerned = "every test of this report." if everywhere else f"{', '.join(one.text for one in banner.affected)}."
    return {
        "title": banner.title,
        "meaning": banner.meaning,
        "reasons": [*banner.reasons[:_MOST_REASONS], *([f"and {left_out} more"] if left_out > 0 else [])],
        "concerns": f"Concerns {concerned}" if banner.affected else "",
    }


def _test(page: Page, pages: int, anchors: set[str]) -> dict[str, Any]:
    lists = (
        ("Reduced: what differs from the full-length protocol", page.altered),
        ("Notes on this recording", page.notes),
    )
    parts = (("What stands out", page.findings), ("Verdict", page.result), ("Steady state", page.determination))
    tables = [table for _, table in parts if table] + list(page.tables)
    origins = (sources_of(*tables), cells_of(*tables))
    dates = [f"{fact.name} {fact.value}" for fact in page.head if fact.name != "Page"]
    return {
        "id": page.id,
        "name": f"{page.drive} · {page.measurement}",
        "title": page.title,
        "origins": " ".join(filter(None, origins)),
        "labels": page.labels,
        "dates": " · ".join([*dates, f"test {page.number} of {pages}"]),
        "header": [_facts(column) for column in header_block(page)],
        "groups": [{"title": group.title, "facts": _facts(group.facts)} for group in page.groups],
        "lists": [{"title": title, "items": items} for title, items in lists if items],
        "parts": [{"title": title, "tables": [_table(table, anchors, origins)]} for title, table in parts if table],
        "figures": [_figure(figure) for figure in page.figures],
        "tables": [_table(table, anchors, origins) for table in page.tables if not table.collapsed],
        "elsewhere": [
            f"{table.caption}: {len(table.rows)} rows, which are in the report for the screen and in the tables of "
            "the study."
            for table in page.tables
            if table.collapsed
        ],
    }


def _facts(facts: tuple[Fact, ...]) -> list[dict[str, str]]:
    return [{"name": fact.name, "value": fact.value, "tone": fact.tone} for fact in facts]


def _table(table: Table, anchors: set[str], of_test: tuple[str, ...]) -> dict[str, Any]:
    """What a table says; where it is from only if that is not what is said `of_test`, at the head of it."""
    origins = [line for line in (sources_of(table), cells_of(table)) if line not in of_test]
    reasons = [f"[{number}] {reason}" for number, reason in enumerate(table.reasons, start=1)]
    return {
        "caption": table.caption,
        "columns": [
            {
                "text": column.text,
                "numeric": column.numeric,
                **_longest(column.text, [row[place] for row in table.rows]),
            }
            for place, column in enumerate(table.columns)
        ],
        "rows": [[_cell(cell, anchors) for cell in row] for row in table.rows],
        "notes": [line for line in (table.note, *reasons, *origins) if line],
    }


def _longest(head: str, cells: list[Cell]) -> dict[str, float]:
    """Letters of the longest word and of the longest text of a column."""
    sized = [(head, 1.0), *((_said(cell), 1.0) for cell in cells), *((cell.small, _SMALL) for cell in cells)]
    words = max(1.0, *(share * min(_MOST_IN_WORD, max(map(len, _BREAK.split(text)))) for text, share in sized))
    texts = max(share * len(text) for text, share in sized)
    return {"longest_word": words, "longest_text": max(words, min(texts, _MOST_LETTERS))}


def _said(cell: Cell) -> str:
    return f"{cell.text} {cell.verdict}".rstrip()


def _cell(cell: Cell, anchors: set[str]) -> dict[str, str]:
    return {
        "text": _said(cell),
        "small": cell.small,
        "tone": cell.tone,
        "anchor": cell.anchor if cell.anchor in anchors else "",
    }


def _figure(figure: Figure) -> dict[str, str | int]:
    svg = unquote(figure.uri.partition(",")[2])  # as `picture.data_uri` packed it
    return {
        "title": figure.title,
        "caption": _OF_CHARTS.sub("", figure.caption.replace("\n", " ")),
        "alt": figure.alt.replace("\n", " "),
        "width": figure.width,
        "height": figure.height,
        "svg": svg,
    }


def sources_of(*tables: Table) -> str:
    """The recordings that tables are from, in words; empty where there are none."""
    found = dict.fromkeys(source for table in tables for source in table.sources)
    return f"From {'; '.join(found)}." if found else ""


def cells_of(*tables: Table) -> str:
    """Where the fio jobs are that the numbers of tables stand on, in words; empty where there are none."""
    proofs = (cell.proof for table in tables for row in table.rows for cell in row if cell.proof is not None)
    places = sorted({place for proof in proofs for place in proof.evidence})
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
