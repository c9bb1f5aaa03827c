"""Each input of the tables is refused by the approved sentence, or becomes the approved value."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cases import Case, make_project, outcome, table

NOTHING = {"becomes": None}
REFUSALS, OUTCOMES = table("refusals"), [*table("outcomes"), *table("functions")]


def named(cases: list[Case]) -> list[object]:
    return [pytest.param(case, id=f"{case['kind']}-{json.dumps(case['given'])[:60]}") for case in cases]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("cases")
    make_project(made)
    return made


@pytest.fixture(autouse=True)
def _here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)


@pytest.mark.parametrize("case", named(REFUSALS))
def test_a_mistake_is_refused_by_one_sentence_and_nothing_is_made(case: Case, folder: Path) -> None:
    assert outcome(case) == {"refused": case["refused"]}
    assert "\n" not in case["refused"]
    assert not (folder / "results").exists()


@pytest.mark.parametrize("case", named(OUTCOMES))
def test_an_input_becomes_what_was_approved(case: Case) -> None:
    assert outcome(case) == {"becomes": case["becomes"]}


def test_the_unchanged_texts_are_valid() -> None:
    """The cases that change a line of them would be refused anyway."""
    for name in ("lines.yaml", "cells.yaml"):
        assert outcome({"kind": "line", "given": [name, "source: s", "source: other"]}) == NOTHING
    for scale in ("", "demo"):
        assert outcome({"kind": "line of a study", "given": [scale, "5s", "6s"]}) == NOTHING
