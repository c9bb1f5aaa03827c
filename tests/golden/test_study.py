"""The golden study: kept recordings give the tables, words and digests of plans that were approved.

If a change is meant to change one: `.venv/bin/python tests/golden/make_study approve`, read what git shows, and give
the reason in CHANGELOG.
"""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from golden_study import KEPT, GoldenProject, digests, restore, tables, texts
from pandas.testing import assert_frame_equal


def test_recordings_give_the_same_tables_and_words(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Tables are the same to nine digits: processors round the last digits of logarithms and sums differently."""
    project = GoldenProject(tmp_path / "project")
    restore(project)
    assert not {"purge", "precondition", "measure"} & project.to_do().keys(), "a plan has changed: it is measured again"
    project.run()
    found = tables(project)
    assert sorted(found) == sorted(path.stem for path in (KEPT / "tables").glob("*.parquet"))
    for name, table in found.items():
        with subtests.test(table=name):
            assert_frame_equal(table, pd.read_parquet(KEPT / f"tables/{name}.parquet"), rtol=1e-9, atol=0)
    for name, text in texts(project).items():
        with subtests.test(words=name):
            assert text == (KEPT / f"approved/{name}.txt").read_text()


def test_plans_keep_their_digests(project: Path) -> None:
    """A changed digest makes every user measure again: change one only on purpose."""
    assert digests(project) == json.loads((KEPT / "approved/digests.json").read_text())
