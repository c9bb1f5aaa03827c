"""An archive of somebody else is data on the site, never code."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_archives import VALUES, Result, made_archive, study_files, write_archive

from drivelab.core.errors import UserError
from drivelab.publish import reading
from drivelab.publish.files import encoded
from drivelab.publish.reading import read_archive
from drivelab.publish.record import finite, model_of, text
from drivelab.publish.site import publish
from drivelab.report.html import report_policy
from drivelab.tables import io

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&{{7*7}}\x1b[2J\u202e../../etc"


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))


def test_hostile_texts_are_texts(tmp_path: Path) -> None:
    hostile = Result(
        HOSTILE, HOSTILE, HOSTILE, date=HOSTILE, conditions={HOSTILE: HOSTILE, "steps": HOSTILE}, recordings=3
    )
    made_archive(tmp_path / "a.tar.gz", hostile, Result("b", recordings=3), title=HOSTILE)
    site = tmp_path / "site"
    publish([tmp_path / "a.tar.gz"], site, HOSTILE)
    names = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    assert all(re.fullmatch(r"[a-z]+\.(html|json)|models/[a-z0-9-]+\.html|studies/[0-9a-f]{64}/study\.json", name)
               for name in names)  # fmt: skip
    for path in site.rglob("*.html"):
        parser = _Tags()
        parser.feed(path.read_text())
        scripts = [attributes for tag, attributes in parser.tags if tag == "script"]
        assert [given for given in scripts if given.get("type") != "application/gzip"] == [{}], path
        assert not any(name.startswith("on") for _, attributes in parser.tags for name in attributes)
        assert not any(tag in ("img", "iframe", "object", "base", "form") for tag, _ in parser.tags)
        assert "\x1b" not in path.read_text()
        assert "\u202e" not in path.read_text()


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e308, -1.0, 0.0, 5e-324])
def test_huge_and_missing_numbers_are_published(tmp_path: Path, value: float) -> None:
    files, path = study_files([Result("a", recordings=3), Result("b", recordings=3)]), tmp_path / "summary.parquet"
    path.write_bytes(files["results/tables/summary.parquet"])
    table = pq.read_table(path)
    numbers = pa.array([value] * 3 + table["value"].to_pylist()[3:])
    io.write(table.set_column(table.schema.get_field_index("value"), "value", numbers), path, "summary")
    files["results/tables/summary.parquet"] = path.read_bytes()
    write_archive(tmp_path / "a.tar.gz", files)
    publish([tmp_path / "a.tar.gz"], tmp_path / "site")
    for path in (tmp_path / "site").rglob("*.json"):
        json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(name))


def test_numbers_that_are_none() -> None:
    assert [finite(value) for value in (None, float("nan"), float("-inf"), "x", 10**400, 2)] == [None] * 5 + [2.0]
    with pytest.raises(ValueError, match="JSON"):
        encoded(float("nan"))


def test_texts_are_cut_and_cleaned() -> None:
    assert text("a\n\x1b[31m\u202eb\ud800") == "a  [31m b?" or text("a\n\x1b[31m\u202eb\ud800") == "a  [31m b "
    assert len(text("x" * 10_000)) == 300
    assert text(None) == text(float("nan")) == ""
    assert re.fullmatch(r"[a-z0-9-]+", model_of({"model": "../../\u0130 <b>"})["id"])
    assert model_of({"drive": "old"})["name"] == "old, model not recorded"


@pytest.mark.parametrize("name", ["../evil", "results/../../evil", "/etc/passwd", "a//b", "a\x1b[2J", "a\u202eb"])
def test_a_name_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    write_archive(tmp_path / "a.tar.gz", {**study_files([Result()]), name: b"evil"})
    with pytest.raises(UserError, match="do not trust this archive"):
        publish([tmp_path / "a.tar.gz"], tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_an_altered_archive_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    made_archive(path, Result())
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"was altered .* Nothing of it was published"):
        publish([path], tmp_path / "site")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(UserError, match="was altered"):
        publish([tmp_path / "a.tar.gz"], tmp_path / "site")
    with pytest.raises(UserError, match="is a folder"):
        publish([tmp_path], tmp_path / "site")
    with pytest.raises(FileNotFoundError):
        publish([tmp_path / "missing"], tmp_path / "site")


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" * 100, b"\0" * 1000])
def test_an_unreadable_table_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    write_archive(tmp_path / "a.tar.gz", {**study_files([Result()]), "results/tables/summary.parquet": data})
    with pytest.raises(UserError, match=r"a\.tar\.gz: results/tables/summary\.parquet cannot be published") as refused:
        read_archive(tmp_path / "a.tar.gz")
    assert "drivelab-publish" not in str(refused.value)


def test_too_large_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_archive(tmp_path / "a.tar.gz", Result(), report="x" * 50_000)
    assert read_archive(tmp_path / "a.tar.gz").report
    monkeypatch.setattr(reading, "MOST_ROWS", len(VALUES) - 1)
    with pytest.raises(UserError, match="16 rows"):
        read_archive(tmp_path / "a.tar.gz")
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MOST_VALUES", len(VALUES) - 1)
    with pytest.raises(UserError, match="with 3 values"):
        read_archive(tmp_path / "a.tar.gz")
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MOST_FILE_BYTES", 40_000)
    archived = read_archive(tmp_path / "a.tar.gz")
    assert (archived.report, archived.without_report[:19]) == ("", "the report has more")
    monkeypatch.setattr(reading, "MOST_FILE_BYTES", 100)
    with pytest.raises(UserError, match="Leave this archive out"):
        read_archive(tmp_path / "a.tar.gz")


def test_a_value_twice_is_refused(tmp_path: Path) -> None:
    made_archive(tmp_path / "a.tar.gz", Result(), Result())
    with pytest.raises(UserError, match="holds a value twice"):
        read_archive(tmp_path / "a.tar.gz")


@pytest.mark.parametrize("graph", [b"", b"[", b"[]", b'{"@graph": 1}', b'{"@graph": [1]}', b"[" * 100_000])
def test_broken_metadata_leave_the_title_out(tmp_path: Path, graph: bytes) -> None:
    write_archive(tmp_path / "a.tar.gz", {**study_files([Result()]), "ro-crate-metadata.json": graph})
    assert read_archive(tmp_path / "a.tar.gz").about == {}


def test_a_report_is_behind_a_policy(tmp_path: Path) -> None:
    html = '<html><head><meta http-equiv="Content-Security-Policy" content="default-src *"></head><script>1</script>'
    made_archive(tmp_path / "a.tar.gz", Result(), report=html)
    report = read_archive(tmp_path / "a.tar.gz").report
    assert report.startswith('<!DOCTYPE html><meta charset="utf-8"><meta http-equiv="Content-Security-Policy"')
    assert report.index(report_policy()) < report.index(html)
    assert "script-src 'sha256-" in report_policy()
    assert "default-src 'none'" in report_policy()


@pytest.mark.parametrize(
    "report",
    ['<meta http-equiv="refresh" content="0;url=https://example.org">', "<meta HTTP-EQUIV=refresh>",
     '<meta http-equiv="&#114;efresh">', "<meta http-equiv = 'Content-Security-Policy'>"],
)  # fmt: skip
def test_a_report_with_another_header_is_left_out(tmp_path: Path, report: str) -> None:
    made_archive(tmp_path / "a.tar.gz", Result(), report=report)
    publish([tmp_path / "a.tar.gz"], tmp_path / "site")
    (study,) = json.loads((tmp_path / "site/index.json").read_text())["studies"]
    assert study["report"] is None
    assert study["without_report"] == "the report sets a header itself"
    assert not list((tmp_path / "site").rglob("report.html"))


def test_a_report_that_is_not_text_is_left_out(tmp_path: Path) -> None:
    files: dict[str, Any] = study_files([Result()])
    write_archive(tmp_path / "a.tar.gz", {**files, "results/report/index.html": b"\xff\xfe<\0s\0"})
    assert read_archive(tmp_path / "a.tar.gz").without_report == "the report is not UTF-8 text"
