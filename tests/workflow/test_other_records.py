"""Snakemake's database backend is refused before any write, wherever the option is set."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from mini_project import Project

REFUSAL = "Snakemake's persistence backend 'db' cannot be used"
DATABASE = "persistence-backend: db\npersistence-backend-db-url: sqlite:///records.db\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project with a profile of its user in the folder `mine`."""
    project = Project(tmp_path / "project")
    (project.folder / "mine").mkdir()
    (project.folder / "mine/config.yaml").write_text(DATABASE)
    return project


def run(project: Project, program: str, options: str, profile: str) -> str:
    """Run a command that must be refused without any write; return its output."""
    code = "import sys; from drivelab.cli.main import main; sys.exit(main())"
    command = {
        "snakemake": ["-m", "snakemake", "--cores", "1", "--config", f"study={project.study}"],
        "drivelab": ["-c", code, "run", project.study],
    }[program]
    environment = {**project.environment, **({"SNAKEMAKE_PROFILE": profile} if profile else {})}
    done = subprocess.run(
        [sys.executable, *command, *options.split()], cwd=project.folder, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    output = done.stdout + done.stderr
    assert done.returncode != 0, output
    assert REFUSAL in output
    assert "Traceback" not in output
    assert not (project.folder / "results").exists()
    assert not (project.folder / "records.db").exists()
    return output


@pytest.mark.parametrize(("options", "profile"), [("--persistence-backend=db --dry-run", ""), ("", "mine")])
def test_an_option_of_snakemake_is_refused(project: Project, options: str, profile: str) -> None:
    run(project, "snakemake", options, profile)


@pytest.mark.parametrize(("options", "profile"), [("--profile mine", ""), ("", "")])
def test_a_profile_of_drivelab_run_is_refused(project: Project, options: str, profile: str) -> None:
    if not options and not profile:
        with (project.folder / "profiles/default/config.yaml").open("a") as file:
            file.write(DATABASE)
    output = run(project, "drivelab", options, profile)
    assert output.startswith("drivelab: ")
    assert len(output.splitlines()) == 1


def test_the_file_backend_is_accepted(project: Project) -> None:
    done = project.snakemake("--persistence-backend", "file", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
