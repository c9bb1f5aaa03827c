from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from drivelab.figures.base.svg import with_values
from drivelab.report.content import build
from drivelab.report.document import Download, Report
from drivelab.report.html import render
from drivelab.report.numbers import number
from drivelab.report.sections.proof import fio_jobs

VOID = {"meta", "img", "link", "br", "hr", "rect", "line", "input"}
VALUES = {"panels": [{"marks": [{"m": 0, "name": "a < b & c", "x": [1], "y": [2]}]}], "legend": []}
EVIL = "<script>alert(1)</script>\"' onload=x"


class Page(HTMLParser):
    """Collect what a browser shows; fail on elements that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data: str) -> None:
        if not {"style", "title", "script"} & set(self.open):
            self.text.append(data)

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.text))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def html(report: Report) -> str:
    return render(report)


@pytest.fixture
def charted(tables: Any, study: Any, plans: Any, figures: Any) -> str:
    """With one figure that carries values."""
    figures[-1]["svg"] = with_values(figures[-1]["svg"], VALUES)
    return render(build(tables, study, plans, figures, "2025-11-21T05:10:00+00:00"))


def unpacked(text: str) -> str:
    return gzip.decompress(base64.b64decode(text)).decode()


def test_every_value_of_the_summary_appears(html: str, tables: dict[str, pd.DataFrame]) -> None:
    words = set(Page(html).words.split())
    values = tables["summary"]["value"]
    assert [value for value in values if not {number(value), number(value / 1000)} & words] == [], "µs may be ms"


def test_the_html_is_well_formed_and_labelled(html: str) -> None:
    page = Page(html)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.elements:
        if (target := attributes.get("aria-labelledby")) is not None:
            assert target in ids
        if (href := attributes.get("href")) is not None and not href.startswith("data:application/gzip;base64,"):
            assert href.startswith("#")
            assert href[1:] in ids
    assert [tag for tag, _ in page.elements].count("h1") == 1
    assert {"header", "main", "nav", "footer"} <= {tag for tag, _ in page.elements}
    assert all(attributes.get("alt") for attributes in page.all("img"))
    assert all(attributes.get("scope") in {"col", "row"} for attributes in page.all("th"))
    assert len(page.all("table")) == len(page.all("caption"))
    assert page.all("html") == [{"lang": "en"}]


def test_headings_skip_no_level(html: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(html).elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_the_html_loads_nothing(html: str) -> None:
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"link", "iframe", "object", "embed", "base", "form"}
    pictures = [attributes["src"] or "" for attributes in page.all("img")]
    assert all(uri.startswith("data:image/svg+xml;charset=utf-8,") for uri in pictures)
    for uri in pictures:
        html = html.replace(uri, "")
    assert not any("src" in attributes for attributes in page.all("script"))
    assert not re.search(r"https?://|@import|url\(", html)
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on") or name == "style"
    ]


def test_only_scripts_with_a_hash_in_the_policy_run(charted: str) -> None:
    own = charted.rpartition("<script>")[2].partition("</script>")[0]
    (policy,) = (m["content"] for m in Page(charted).all("meta") if m.get("http-equiv") == "Content-Security-Policy")
    digest = f"'sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}'"
    assert f"script-src {digest};" in str(policy)
    assert "default-src 'none'" in str(policy)
    data = [attributes for attributes in Page(charted).all("script") if attributes]
    assert {attributes["type"] for attributes in data} == {"application/gzip"}
    assert len(Page(charted).all("script")) == len(data) + 1


def test_a_figure_has_its_values_beside_its_picture(html: str, charted: str) -> None:
    assert html.count('class="values"') == 1, "the first chart, which the report draws"
    _, values = re.findall(r'class="values">([^<]*)<', charted)
    assert json.loads(unpacked(values)) == VALUES
    assert "metadata" not in "".join(str(one["src"]) for one in Page(charted).all("img"))


def test_tables_can_be_downloaded_or_are_listed_with_the_reason(report: Report) -> None:
    tables = (
        Download("cells", "every cell", 1368, 420_000, b"PAR1 cells"),
        Download("series", "second by second", 7_000_000, 90_000_000, b""),
        Download("telemetry", "temperature", 0, 0, b""),
    )
    page = Page(render(replace(report, downloads=tables)))
    (link,) = (attributes for attributes in page.all("a") if attributes.get("download"))
    assert link["download"] == "cells.parquet"
    assert base64.b64decode(str(link["href"]).partition("base64,")[2]) == b"PAR1 cells"
    assert "cells.parquet (1,368 rows, 10 B): every cell" in page.words
    assert "series (7,000,000 rows, 90 MB): second by second; see the files" in page.words
    assert "Empty in this study: telemetry." in page.words


def test_each_number_of_the_results_links_to_its_provenance(html: str, tables: dict[str, pd.DataFrame]) -> None:
    evidence = json.loads(unpacked(re.search(r'id="evidence">([^<]*)<', html)[1]))  # type: ignore[index]
    cells = [attributes for attributes in Page(html).all("td") if attributes.get("data-p") is not None]
    proofs = [evidence["proofs"][int(attributes["data-p"] or 0)] for attributes in cells]
    values = [dict(facts).get("Value") for _, facts, *_ in proofs]
    shown = {value.split("\u00a0")[0] for value in values if value}
    assert {number(value) for value in tables["summary"]["value"]} <= shown
    for attributes, (_, facts, recordings, places, parts) in zip(cells, proofs, strict=True):
        by_name = dict(facts)
        known = (by_name.get(name) for name in ("Value", "Average", "Delta"))
        assert number(attributes["data-v"]) == next(filter(None, known)).split("\u00a0")[0]
        assert recordings
        assert parts or places
        assert all(place.startswith(tuple(f"{recording}/" for recording in recordings)) for place in places)


def test_a_number_that_only_the_first_screen_shows_has_its_provenance(report: Report) -> None:
    alone = replace(report, pages=(), verdict_table=None, findings=None, comparison_tables=())
    assert alone.glance is not None
    assert re.search(r'<td[^>]* data-p="0"', render(alone))


def test_the_report_contains_the_fio_jobs(tables: Any, study: Any, plans: Any, tmp_path: Path) -> None:
    report = build(tables, study, plans, [], None)
    name = "op7/pts-iops/1a2b3c4d5e6f-run1"
    job = tmp_path / "cells/0-round04-cell00/job.fio"
    job.parent.mkdir(parents=True)
    job.write_text("[cell]\nrw=randwrite\n")
    jobs = fio_jobs(report, {name: tmp_path})
    assert jobs == {f"{name}/cells/0-round04-cell00": "[cell]\nrw=randwrite\n"}
    evidence = json.loads(unpacked(re.search(r'id="evidence">([^<]*)<', render(report, jobs))[1]))  # type: ignore[index]
    assert evidence["jobs"] == jobs


def test_evil_names_stay_text(tables: Any, study: Any, plans: Any, figures: Any) -> None:
    def poison(value: Any) -> Any:
        return EVIL + value if isinstance(value, str) and value not in {"op7", "op28"} else value

    labels = {"measurement", "metric", "statistic", "verdict", "kind", "unit", "pattern", "clock"}
    evil = {
        name: frame.assign(**{c: frame[c].map(poison) for c in frame.columns if c not in labels and c != "cell_label"})
        for name, frame in tables.items()
    }
    evil["summary"]["cell_label"] = evil["summary"]["cell_label"].map(lambda label: f"{label} {EVIL}")
    evil["deltas"]["cell_label"] = evil["deltas"]["cell_label"].map(lambda label: f"{label} {EVIL}")
    worse = [
        {**plan, "path": EVIL, "data_pattern": EVIL, "notes": [EVIL], "reduced_why": [EVIL], "engine": EVIL,
         "started": EVIL, "finished": EVIL, "purge": EVIL, "fill": EVIL,
         "protocol": {"name": EVIL, "title": EVIL, "source": EVIL}}
        for plan in plans
    ]  # fmt: skip
    evil_figures = [{**figure, "title": EVIL, "caption": EVIL} for figure in figures]
    html = render(build(evil, {**study, "title": EVIL, "name": EVIL}, worse, evil_figures, EVIL))
    page = Page(html)
    assert "<script>alert" not in html
    assert len([attributes for attributes in page.all("script") if not attributes]) == 1
    assert not [name for _, attributes in page.elements for name in attributes if name.startswith("on")]
    assert EVIL in page.words


def test_an_evil_drive_name_gives_a_safe_anchor(tables: Any, study: Any, plans: Any) -> None:
    renamed = {name: frame.replace("op28", EVIL) for name, frame in tables.items()}
    page = Page(
        render(build(renamed, study, [{**p, "drive": p["drive"].replace("op28", EVIL)} for p in plans], [], None))
    )
    assert all(
        re.fullmatch(r"[a-z0-9-]+", attributes["id"] or "") for _, attributes in page.elements if "id" in attributes
    )


def test_the_report_adds_little_to_its_figures(html: str, figures: Any) -> None:
    svg_length = sum(len(figure["svg"]) for figure in figures)
    assert len(html.encode()) < 250_000 + 1.4 * svg_length


def test_the_same_input_gives_the_same_html(html: str, tables: Any, study: Any, plans: Any, figures: Any) -> None:
    assert render(build(tables, study, plans, figures, "2025-11-21T05:10:00+00:00")) == html
