"""The golden study: kept recordings give the tables, words and digests of plans that were approved.

If a change is meant to change one: `.venv/bin/python tests/golden/make_study approve`, read what git shows, and give
the reason in CHANGELOG.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from golden_study import COMMANDS, KEPT, GoldenProject, digests, restore, tables, texts
from mini_project import made_once
from pandas.testing import assert_frame_equal

READ = "read.json"
TABLES = sorted(path.stem for path in (KEPT / "tables").glob("*.parquet"))


def analyse(project: GoldenProject) -> None:
    restore(project)
    assert not {"purge", "precondition", "measure"} & project.to_do().keys(), "a plan has changed: it is measured again"
    project.run()
    (project.folder / READ).write_text(json.dumps(texts(project)))


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> GoldenProject:
    """The golden study, analysed once for all workers."""
    return made_once(tmp_path_factory, worker_id, "golden", analyse, GoldenProject)


@pytest.fixture(scope="module")
def found(analysed: GoldenProject) -> dict[str, pd.DataFrame]:
    return tables(analysed)


@pytest.fixture(scope="module")
def read(analysed: GoldenProject) -> dict[str, str]:
    result: dict[str, str] = json.loads((analysed.folder / READ).read_text())
    return result


def test_there_are_the_same_tables(found: dict[str, pd.DataFrame]) -> None:
    assert sorted(found) == TABLES


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_the_same_to_nine_digits(found: dict[str, pd.DataFrame], name: str) -> None:
    """Processors and libraries round the last digits of logarithms and sums differently."""
    assert_frame_equal(found[name], pd.read_parquet(KEPT / f"tables/{name}.parquet"), rtol=1e-9, atol=0)


@pytest.mark.parametrize("name", ["report", *COMMANDS])
def test_people_read_the_same_words(read: dict[str, str], name: str) -> None:
    assert read[name] == (KEPT / f"approved/{name}.txt").read_text()


def test_plans_keep_their_digests(project: Path) -> None:
    """A changed digest makes every user measure again: change one only on purpose."""
    assert digests(project) == json.loads((KEPT / "approved/digests.json").read_text())
