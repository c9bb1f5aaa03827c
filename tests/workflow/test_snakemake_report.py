"""Texts that users write stay texts in Snakemake's own report."""

from __future__ import annotations

import json
from html.parser import HTMLParser

from mini_project import Project

ATTACK = "</script><img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """The names of a page's elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)


def test_no_text_of_a_study_becomes_html(copy: Project) -> None:
    copy.edit(copy.study, "basis: ", f"title: {ATTACK}\nbasis: ")
    for key in ("title", "source"):
        copy.edit("config/protocols/pts-iops.yaml", f"\n{key}: ", f"\n{key}: {ATTACK} ")
    done = copy.snakemake("--report", "own.html")
    assert done.returncode == 0, done.stderr
    text = (copy.folder / "own.html").read_text()
    assert "script" in Elements(text).names
    assert "img" not in Elements(text).names
    assert "<img src=x" not in text


def test_a_path_that_would_become_html_is_refused(copy: Project) -> None:
    copy.edit(copy.study, "{shipped: sqlite-inserts}", json.dumps({"file": f"own/{ATTACK}.parquet"}))
    refused = copy.snakemake("--dry-run")
    assert refused.returncode != 0
    assert "has '<' or '>'" in refused.stdout + refused.stderr
