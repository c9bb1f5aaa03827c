"""A finished study for the documentation pages, run once for all workers."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_commands import shortened_study
from mini_project import Project, made_once


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Project:
    """Return the project after `./drivelab demo` up to its tables, in simulated time; each page copies it."""
    return made_once(tmp_path_factory, worker_id, "documented", _run_demo)


def _run_demo(folder: Path) -> None:
    project = Project(folder)
    study = project.folder / "config/demo.yaml"
    study.write_text(shortened_study(study.read_text()))
    project.end_with_tables()
    done = project.drivelab("demo")
    assert done.returncode == 0, done.stdout + done.stderr
