"""The registry of formats, and its `drivelab trace` subcommands."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from whole_traces import read_trace

from drivelab.cli.traces.trace import add_parser
from drivelab.trace import formats
from drivelab.trace.formats import all_formats


def run(*arguments: str | Path) -> int:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers(required=True))
    options = parser.parse_args(["trace", *map(str, arguments)])
    return int(options.handler(options))


def test_an_entry_adds_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[4] / "docs/how-to/trace-format.md").read_text()
    (tmp_path / "columns.yaml").write_text(page.split("```yaml\n")[1].split("```")[0])
    monkeypatch.setattr(formats, "PLAIN_COLUMNS", tmp_path / "columns.yaml")
    all_formats.cache_clear()
    try:
        path = tmp_path / "x"
        path.write_text("ns;kind;sector;bytes\n100;R;8;4096\n150;W;16;512\n")
        assert run("import", path, "-o", tmp_path / "t.parquet") == 0
    finally:
        all_formats.cache_clear()
    rows = read_trace(tmp_path / "t.parquet")[0].to_pylist()
    assert [(row["queue_ns"], row["operation"], row["offset_bytes"], row["length_bytes"]) for row in rows] == [
        (0, "read", 4096, 4096), (50, "write", 8192, 512)
    ]  # fmt: skip


def test_formats_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("formats", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 11
    assert [entry["name"] for entry in listed if entry["export"]] == ["fio-iolog-v3"]
    assert run("formats") == 0
    assert "msr: MSR Cambridge block traces (import)" in capsys.readouterr().out


def test_import_and_export_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, trace = tmp_path / "a.csv", tmp_path / "t.parquet"
    path.write_text("1,R,0,512,10\n1,W,512,512,20\nx\n2,W,512,512,20")
    arguments = ("import", path, "--volume", "1", "--format", "alibaba", "--max-malformed", "1", "-o", trace)
    assert run(*arguments, "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["malformed"], report["other_volumes"], report["unterminated"]) == (2, 1, 1, True)
    assert report["malformed_first"] == [{"line": 3, "reason": "has 1 columns instead of 5"}]
    assert run(*arguments) == 0
    text = capsys.readouterr().out
    assert "malformed: line 3, reason has 1 columns instead of 5" in text
    assert "the last line has no newline" in text
    assert run("export", trace, "--format", "fio-iolog-v3", "-o", tmp_path / "t.iolog", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "format": "fio-iolog-v3", "requests": 2, "dropped": {}, "altered": {},
    }  # fmt: skip


def test_a_negative_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        run("import", tmp_path / "x", "--max-malformed", "-1", "-o", tmp_path / "t.parquet")
