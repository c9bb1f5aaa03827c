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
    return Project(tmp_path / "project")


def profile_in(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(DATABASE)
    return folder


def run(project: Project, command: list[str], **environment: str) -> str:
    """Run a command that must be refused without any write; return its output."""
    done = subprocess.run(
        command,
        cwd=project.folder,
        env={**project.environment, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    output = done.stdout + done.stderr
    assert done.returncode != 0, output
    assert REFUSAL in output
    assert "Traceback" not in output
    assert not (project.folder / "results").exists()
    assert not (project.folder / "records.db").exists()
    return output


def snakemake(project: Project, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "snakemake", "--cores", "1", "--config", f"study={project.study}", *arguments]


def drivelab(project: Project, *arguments: str) -> list[str]:
    code = "import sys; from drivelab.cli.main import main; sys.exit(main())"
    return [sys.executable, "-c", code, "run", project.study, *arguments]


def test_an_option_of_snakemake_is_refused(project: Project) -> None:
    run(project, snakemake(project, "--persistence-backend", "db"))


def test_an_option_of_snakemake_is_refused_in_a_dry_run(project: Project) -> None:
    run(project, snakemake(project, "--persistence-backend=db", "--dry-run"))


def test_a_profile_of_snakemake_is_refused(project: Project) -> None:
    run(project, snakemake(project, "--profile", str(profile_in(project.folder / "mine"))))


def test_a_profile_in_the_environment_of_snakemake_is_refused(project: Project) -> None:
    run(project, snakemake(project), SNAKEMAKE_PROFILE=str(profile_in(project.folder / "mine")))


def test_a_profile_of_drivelab_run_is_refused(project: Project) -> None:
    output = run(project, drivelab(project, "--profile", str(profile_in(project.folder / "mine"))))
    assert output.startswith("drivelab: ")
    assert len(output.splitlines()) == 1


def test_a_profile_in_the_environment_of_drivelab_run_is_refused(project: Project) -> None:
    output = run(project, drivelab(project), SNAKEMAKE_PROFILE=str(profile_in(project.folder / "mine")))
    assert len(output.splitlines()) == 1


def test_the_profile_of_the_workflow_is_refused_by_drivelab_run(project: Project) -> None:
    with (project.folder / "profiles/default/config.yaml").open("a") as file:
        file.write(DATABASE)
    output = run(project, drivelab(project))
    assert len(output.splitlines()) == 1


def test_the_file_backend_is_accepted(project: Project) -> None:
    done = project.snakemake("--persistence-backend", "file", "--dry-run")
    assert done.returncode == 0, done.stdout + done.stderr
