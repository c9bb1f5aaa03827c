"""Units in words, lines that break between words, strips, and progress in one line of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.core import terminal
from drivelab.core.errors import UserError
from drivelab.core.units import format_size, parse_size


@given(st.integers(min_value=1, max_value=1 << 50))
def test_formatted_size_parses_to_the_same_value(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == size_bytes


@pytest.mark.parametrize("text", ["4", "4KB", "KiB", "-4KiB", "0.3B", 4096, None, "4 KiB KiB"])
def test_invalid_size_is_refused(text: object) -> None:
    with pytest.raises(UserError):
        parse_size(text)


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


def test_a_strip_reaches_from_zero_or_the_minimum_to_the_maximum() -> None:
    assert terminal.strip([0, 50, 100], 12) == " ▄█"
    assert terminal.strip([100, 0.1], 12) == "█▁", "no value but zero is invisible"
    assert terminal.strip([0, 0], 12) == "  "
    assert terminal.strip([], 12) == terminal.strip([], 12, from_zero=False) == ""
    assert terminal.strip([96, 98, 100], 12, from_zero=False) == "▁▄█"
    assert terminal.strip([100.0, 100.1], 12, from_zero=False) == "▄▄"
    assert terminal.strip([0, 2, 3, 5], 2) == "▂█", "means of neighbours"


def test_progress_takes_one_line_of_a_terminal_and_vanishes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with terminal.progress_line() as show:
        show("1 of 2")
    assert capsys.readouterr() == ("", "")
    terminal.escape_output()
    monkeypatch.setattr(terminal.sys.stderr.unescaped, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.progress_line() as show:
        show("1 of 2: [bold]a.tar.gz")
    text = capsys.readouterr().err
    assert "1 of 2: [bold]a.tar.gz" in text
    assert text.endswith("\x1b[2K"), "the line is erased"
    assert "\\x0d" not in text
