"""The truth table of reruns: after each change exactly the jobs that it says, and the page shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from mini_project import Project
from rerun_cases import CASES, PAGE, Case, with_table

pytestmark = pytest.mark.xdist_group("workflow")


@pytest.mark.parametrize("case", CASES, ids=[case.change for case in CASES])
def test_exactly_these_jobs(case: Case, copy: Project) -> None:
    case.make(copy)
    before = copy.evidence()
    assert copy.jobs() == case.jobs
    if case.runs:
        copy.run()
        assert copy.jobs() == {}, "all is there"
        assert copy.evidence().items() >= before.items(), "what was measured stays as it is"


def test_the_page_shows_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), f"run python tests/support/{Path(with_table.__code__.co_filename).name}"
