"""The mini study, run once for all tests of the workflow."""

from __future__ import annotations

from pathlib import Path

import pytest
from mini_project import Project


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The finished study; tests that change it use `copy`."""
    project = Project(tmp_path_factory.mktemp("finished") / "project")
    project.run()
    return project


@pytest.fixture
def copy(finished: Project, tmp_path: Path) -> Project:
    """A copy of the finished study with the same modification times."""
    return finished.copied(tmp_path / "project")
