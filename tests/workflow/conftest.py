"""The mini study, run once for all workers; each has a copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from mini_project import Project, made_once


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Project:
    """The finished study; tests that change it use `copy`."""
    made = made_once(tmp_path_factory, worker_id, "finished", lambda folder: Project(folder).run())
    return made.copied(tmp_path_factory.mktemp("finished") / "project")


@pytest.fixture(scope="session")
def drawn(finished: Project, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Project:
    """The finished study with its figures, for tests that only read it."""
    return made_once(tmp_path_factory, worker_id, "drawn", lambda folder: finished.copied(folder).drawn().run())


@pytest.fixture
def copy(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished study with the same modification times."""
    return finished.copied(tmp_path / "project")
