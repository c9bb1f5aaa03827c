"""Terminal lines break between words."""

from __future__ import annotations

import pytest

from drivelab.core import terminal


def test_a_long_line_breaks_between_words_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/a/path/that/is/longer/than/the/line"
    text = f"one two three four five {path}\n    a  table  row"
    terminal.say(text)
    assert capsys.readouterr().out == f"{text}\n"
    monkeypatch.setattr(terminal.sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "14")
    terminal.say(text)
    assert capsys.readouterr().out.splitlines() == [
        "one two three", "  four five", f"  {path}", "    a  table", "      row"]  # fmt: skip
