"""The commands in groups, and suggestions for what was mistyped."""

from __future__ import annotations

import pytest

from drivelab.cli.main import main, parser
from drivelab.cli.parser import GROUPS

STAGES = {"purge", "precondition", "measure", "measure-together", "capture-trace"}


def test_every_command_is_in_one_group_or_a_hidden_stage() -> None:
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(set(grouped))
    about = parser().commands.about
    assert {name for name, text in about.items() if text} == set(grouped)
    assert {name for name, text in about.items() if not text} == STAGES


@pytest.mark.parametrize("columns", ["40", "200"])
def test_help_breaks_between_words(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    text = parser().format_help()
    assert max(map(len, text.splitlines())) <= min(int(columns), 80)
    assert not {line.split()[0] for line in text.splitlines() if line.startswith("  ")} & STAGES
    words = set(parser().commands.about["compare"].split())
    assert words <= set(text.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("comapre a b", "drivelab: error: 'comapre' is unknown; did you mean 'compare'?"),
        ("trace inof x", "drivelab trace: error: 'inof' is unknown; did you mean 'info'?"),
        ("report --figures sgv", "argument --figures: 'sgv' is unknown; did you mean 'svg'?"),
        ("zzz", "'zzz' is unknown; choose one of "),
    ],
)
def test_a_mistyped_word_gets_a_suggestion(line: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(line.split())
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_a_mistyped_protocol_gets_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocol", "show", "pts-iosp"]) == 2
    assert capsys.readouterr().err == "drivelab: there is no protocol 'pts-iosp'; did you mean 'pts-iops'?\n"
