"""Texts that users write stay texts in Snakemake's own report."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import pytest
from mini_project import Project

ATTACK = "</script><img src=x onerror=alert(1)>"


class Page(HTMLParser):
    """The elements of a page, and its scripts with an id."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.scripts: dict[str, str] = {}
        self._script: str | None = None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self._script = dict(attrs).get("id") if tag == "script" else None

    def handle_endtag(self, tag: str) -> None:
        self._script = None

    def handle_data(self, data: str) -> None:
        if self._script is not None:
            self.scripts[self._script] = self.scripts.get(self._script, "") + data

    def value(self, script: str) -> Any:
        """Return the JSON that a script assigns."""
        return json.loads(self.scripts[script].partition("=")[2].strip().removesuffix(";"))


@pytest.fixture
def hostile(copy: Project) -> Project:
    """The finished study with an attack in titles, a source and the path of a trace."""
    trace = copy.folder / f"own/{ATTACK}.parquet"
    trace.parent.mkdir(parents=True)
    trace.write_bytes((copy.folder / "traces/sqlite-inserts.parquet").read_bytes())
    copy.edit(copy.study, "{shipped: sqlite-inserts}", json.dumps({"file": f"own/{ATTACK}.parquet"}))
    copy.edit(copy.study, "basis: ", f"title: {ATTACK}\nbasis: ")
    for key in ("title", "source"):
        copy.edit("config/protocols/pts-iops.yaml", f"\n{key}: ", f"\n{key}: {ATTACK} ")
    return copy


def test_no_text_of_a_study_becomes_html(hostile: Project) -> None:
    done = hostile.snakemake("--report", "own.html")
    assert done.returncode == 0, done.stderr
    text = (hostile.folder / "own.html").read_text()
    page = Page(text)
    assert "img" not in page.elements
    assert "<img src=x" not in text
    facts = next(
        result["job_properties"]["params"]
        for path, result in page.value("results").items()
        if path.endswith("index.html")
    )
    assert facts.count(ATTACK) == 3  # two titles and the source, unchanged
    assert any(ATTACK in path for rule in page.value("rules").values() for path in rule["input"])
