"""A small study on its own virtual drive, with a check that nothing is left after the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from faults import ById, FaultStudy
from leftovers import end_processes, leftovers

from drivelab.run.condition import precondition, purge
from drivelab.virtual import manage


@pytest.fixture
def study(tmp_path: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultStudy]:
    """A copy of the project with the study `one`; its folder is the current folder."""
    study = FaultStudy(tmp_path / "project")
    monkeypatch.chdir(study.folder)
    yield study
    manage.stop(force=True)
    remaining = leftovers()
    end_processes()
    assert remaining == []


@pytest.fixture
def conditioned(study: FaultStudy) -> FaultStudy:
    """The study with its drive purged and preconditioned."""
    (study.folder / "plan.json").write_text(study.plan().to_json())
    purge(study.plan(), Path("purged.json"))
    precondition(study.plan(), Path("purged.json"), Path("conditioned.json"))
    return study


@pytest.fixture
def link() -> Iterator[ById]:
    """A link below /dev/disk/by-id for the duration of the test."""
    link = ById()
    yield link
    link.remove()
