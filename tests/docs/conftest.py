"""A finished study for the documentation pages, run once for all workers."""

from __future__ import annotations

import fcntl

import pytest
from doc_commands import shortened_study
from mini_project import ROOT, Project

SHIM = """\
#!/bin/sh
exec python -c 'import sys; from drivelab.cli.main import main; sys.exit(main())' "$@"
"""


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Project:
    """Return the project after `./drivelab demo`, in simulated time without the replay; each page copies it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "documented"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "finished").exists():
            project = Project(folder)
            (folder / "drivelab").write_text(SHIM)
            (folder / "drivelab").chmod(0o755)
            study = (
                (ROOT / "config/demo.yaml")
                .read_text()
                .replace("  - {protocol: trace-replay, scale: demo, trace: sqlite}\n", "")
            )
            (folder / "config/demo.yaml").write_text(shortened_study(study))
            done = project.drivelab("demo")
            assert done.returncode == 0, done.stdout + done.stderr
            (folder / "finished").touch()
        project = Project.__new__(Project)
        project.folder = folder
        return project
