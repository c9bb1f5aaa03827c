"""Names that are not UTF-8 are refused before anything is written: no recording or report could hold them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivelab.cli import main as command

BAD = os.fsdecode(b"bad\xff")
COMMANDS = (
    ["run", "X/study.yaml"], ["plan", "X/study.yaml"], ["quick", "X"], ["init", "X"], ["trace", "info", "X/a.parquet"],
    ["import", "fio-json", "X", "--drive", "a", "-o", "out"], ["query", "FROM summary", "--results", "X"],
    ["archive", "verify", "X"], ["compare", "X", "b"], ["verify", "X"],
)  # fmt: skip


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_path_that_is_not_utf8(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    bad = tmp_path / BAD
    assert command.main([word.replace("X", str(bad)) for word in words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"drivelab: {tmp_path}/bad\\udcff")
    assert "the name is not UTF-8 text, so recordings and reports cannot hold it. Rename the file or folder" in error
    assert not bad.exists()


def test_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / BAD).mkdir()
    monkeypatch.chdir(tmp_path / BAD)
    assert command.main(["protocol", "list"]) == 2
    assert "bad\\udcff: the name is not UTF-8 text" in capsys.readouterr().err


def test_a_file_below_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever writes the name says which one."""

    def write(*_: object) -> None:
        (tmp_path / "a.json").write_text(f"file {BAD}/fio.json\n", encoding="utf-8")

    monkeypatch.setattr(command, "parser", write)
    assert command.main([]) == 2
    assert capsys.readouterr().err.startswith("drivelab: bad\\udcff/fio.json: the name is not UTF-8 text")
