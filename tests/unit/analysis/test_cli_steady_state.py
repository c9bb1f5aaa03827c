from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from drivelab.cli.look.steady_state import add_parser
from drivelab.core.errors import UserError

KEYS = [
    "average",
    "allowed_data_excursion",
    "measured_data_excursion",
    "allowed_slope_excursion",
    "measured_slope_excursion",
    "slope",
    "intercept",
    "steady",
]
VALUES = ["60546", "60013", "62932", "61774", "61061"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> Any:
        parser = argparse.ArgumentParser()
        add_parser(parser.add_subparsers())
        options = parser.parse_args(["steady-state", *arguments])
        assert options.handler(options) == 0
        return json.loads(capsys.readouterr().out)

    return call


def test_values(run: Any) -> None:
    answer = run(*VALUES)
    assert list(answer) == KEYS
    assert answer["average"] == pytest.approx(61265.2)
    assert answer["intercept"] == pytest.approx(60427.9)
    assert answer["steady"] is True


def test_not_steady_exits_with_zero_and_says_so(run: Any) -> None:
    assert run("100", "110", "120", "130", "140")["steady"] is False
    assert run("100", "100", "100")["steady"] is False


def test_options(run: Any) -> None:
    assert run("1", "100", "103", "106", "--window", "3")["average"] == pytest.approx(103)
    assert run(*VALUES, "--data-excursion", "4%")["steady"] is False
    assert run(*VALUES, "--slope-excursion", "1.8%")["steady"] is False


def test_columns_of_a_csv(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "rounds.csv"
    rows = ["RND 4KiB 0/100,SEQ", "9,9"] + [f"{value},{100 + 20 * i}" for i, value in enumerate(VALUES)]
    file.write_text("\ufeff" + "\r\n".join(rows) + "\r\n", encoding="utf-8")
    answer = run("--csv", str(file))
    assert list(answer) == ["variables", "steady", "window"]
    assert list(answer["variables"]) == ["RND 4KiB 0/100", "SEQ"]
    assert list(answer["variables"]["SEQ"]) == KEYS
    assert answer["variables"]["RND 4KiB 0/100"]["steady"] is True
    assert answer["variables"]["RND 4KiB 0/100"]["average"] == pytest.approx(61265.2)
    assert answer["steady"] is False
    assert answer["window"] == [2, 6]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either values or --csv"),
        ([*VALUES, "--csv", "x"], "either values or --csv"),
        (["1", "two", "3"], "value 2 is 'two'"),
        (["1", "0"], "value 2 is '0'"),
        (["1", "-3"], "value 2 is '-3'"),
        (["nan"], "value 1 is 'nan'"),
        ([*VALUES, "--window", "1"], "--window is '1'"),
        ([*VALUES, "--window", "five"], "--window is 'five'"),
        ([*VALUES, "--data-excursion", "20"], "--data-excursion"),
        ([*VALUES, "--slope-excursion", "0%"], "--slope-excursion is '0%'"),
        (["--csv", "missing.csv"], "missing.csv: cannot be read"),
    ],
)
def test_bad_arguments(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=words.replace("(", r"\(")):
        run(*arguments)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no rounds"),
        ("a,b\n", "has no rounds"),
        ("a,b\n1,2\n3,x\n", "line 3, column 'b' is 'x'"),
        ("a,b\n\n1,\n", "line 3, column 'b' is ''"),
        ("a,b\n1,2\n3\n", "line 3: has 1 cells for 2 columns"),
        ("a,a\n1,2\n", "line 1: names are missing or repeated"),
        ("a,\n1,2\n", "line 1: names are missing or repeated"),
        ('a,b\n1,"2\n', "cannot be read as CSV"),
        ("a\n\xff\n", "cannot be read as CSV"),
    ],
)
def test_bad_csv(run: Any, tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "rounds.csv"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(UserError, match=words):
        run("--csv", str(file))
