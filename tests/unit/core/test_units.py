"""Units in words, lines that break between words, strips, and progress in one line of a terminal."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.core import terminal
from drivelab.core.errors import UserError
from drivelab.core.units import (
    counted,
    format_amount,
    format_duration,
    format_factor,
    format_percentage,
    format_size,
    parse_duration,
    parse_share,
    parse_size,
    some,
)


@given(st.integers(min_value=1, max_value=1 << 50))
def test_formatted_size_parses_to_the_same_value(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == size_bytes


def test_sizes_in_the_notation_of_the_standard() -> None:
    assert [format_size(s) for s in (512, 4096, 131072, 1 << 20, 64 << 20)] == [
        "512B",
        "4KiB",
        "128KiB",
        "1024KiB",
        "64MiB",
    ]


def test_durations_and_shares() -> None:
    assert (parse_duration("500ms"), parse_duration("20min"), parse_duration("24h")) == (0.5, 1200.0, 86400.0)
    assert parse_share("20%") == pytest.approx(0.2)
    shown = {4.4: "4 s", 60: "1 min", 185: "3 min 05 s", 7200: "2 h", 7800: "2 h 10 min"}
    assert {seconds: format_duration(seconds) for seconds in shown} == shown


@pytest.mark.parametrize("text", ["4", "4KB", "KiB", "-4KiB", "0.3B", 4096, None, "4 KiB KiB"])
def test_invalid_size_is_refused(text: object) -> None:
    with pytest.raises(UserError):
        parse_size(text)


@pytest.mark.parametrize(
    ("value_pct", "signed", "shown"),
    [
        (61.6, False, "62"),
        (-61.6, False, "\N{MINUS SIGN}62"),
        (3.14, True, "+3.1"),
        (-0.416, True, "\N{MINUS SIGN}0.42"),
        (-0.001, True, "0.00"),
        (12345.6, True, "+12,346"),
    ],
)
def test_digits_of_a_percentage_depend_on_its_size(value_pct: float, signed: bool, shown: str) -> None:
    assert format_percentage(value_pct, signed) == shown


def test_amounts_have_no_exponent() -> None:
    sizes = (7.449 * 2**40, 1010 * 2**20, 759 * 2**40, 1518 * 2**40)
    assert [format_amount(size) for size in sizes] == ["7.45 TiB", "1,010 MiB", "759 TiB", "1,518 TiB"]


@pytest.mark.parametrize(
    ("factor", "text"),
    [(1.3333, "1.33"), (11.25, "11.2"), (115.4, "115"), (999.4, "999"), (999.6, "1,000"), (11468.8, "11,500"),
     (2.5e9, "2,500,000,000")],
)  # fmt: skip
def test_factors_have_no_exponent(factor: float, text: str) -> None:
    assert format_factor(factor) == text


def test_only_one_is_singular() -> None:
    assert [counted(number, "drive") for number in (0, 1, 2)] == ["0 drives", "1 drive", "2 drives"]


@pytest.mark.parametrize(
    ("names", "text"), [((), ""), (("a",), "a"), (("a", "b"), "a, b"), (("a", "b", "c", "d"), "a, b and 2 more")]
)
def test_omitted_names_are_counted(names: tuple[str, ...], text: str) -> None:
    assert some(names, 2) == text


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
