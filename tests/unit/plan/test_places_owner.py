"""Code of other users: a project's files that another user owns or can change are not run (git's CVE-2022-24765)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivelab.cli import main as command
from drivelab.cli.measure import run
from drivelab.cli.start.init import make_project
from drivelab.core import private
from drivelab.core.errors import UserError
from drivelab.plan import places
from drivelab.plan.places import MARKER, SHIPPED, find_root, refuse_foreign_file, refuse_foreign_project

ME, STRANGER = os.geteuid(), 4712


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("SUDO_UID", raising=False)
    make_project(tmp_path / "project")
    return tmp_path / "project"


def owned(monkeypatch: pytest.MonkeyPatch, path: Path, owner: int) -> None:
    """Let one path belong to another user; only root could really do that."""
    original = Path.lstat

    def lstat(self: Path) -> os.stat_result:
        status = original(self)
        return os.stat_result((*status[:4], owner, *status[5:10])) if self == path else status

    monkeypatch.setattr(Path, "lstat", lstat)


def test_an_own_project_is_accepted(project: Path) -> None:
    refuse_foreign_project(project)
    (project / "config").chmod(0o775)  # as with a umask of 002, where a group shares a project
    refuse_foreign_project(project)


@pytest.mark.parametrize(
    "name",
    [
        "",
        MARKER,
        "Snakefile",
        "profiles/default/config.yaml",
        "config/applications.yaml",
        "config/study.yaml",
        "scripts/applications/read_files.py",
    ],
)
def test_a_file_of_another_user_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owned(monkeypatch, project / name, STRANGER)
    with pytest.raises(UserError) as error:
        refuse_foreign_project(project)
    assert f"{project / name}: belongs to user {STRANGER}, and drivelab would run commands from it" in str(error.value)
    assert f"type: chown -hR {ME} {project / name}" in str(error.value)


@pytest.mark.parametrize("name", ["pandas.py", "pandas.so", "pandas/__init__.py"])
def test_a_module_beside_the_snakefile_is_code(project: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Snakemake puts the Snakefile's folder first on Python's path."""
    (project / name).parent.mkdir(exist_ok=True)
    (project / name).touch()
    owned(monkeypatch, project / name, STRANGER)
    with pytest.raises(UserError, match=f"{name}: belongs to user {STRANGER}"):
        refuse_foreign_project(project)


def test_files_of_root_are_trusted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owned(monkeypatch, project / "Snakefile", 0)
    refuse_foreign_project(project)


def test_a_file_that_every_user_can_write_to_is_refused(project: Path) -> None:
    for name in ("Snakefile", "profiles/default", ""):
        (project / name).chmod(0o777)
        with pytest.raises(UserError, match=r"every user can write to it.*type: chmod -R o-w"):
            refuse_foreign_project(project)
        (project / name).chmod(0o755)


def test_links_are_followed(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / "Snakefile").rename(elsewhere / "Snakefile")
    (project / "Snakefile").symlink_to(elsewhere / "Snakefile")
    refuse_foreign_project(project)
    elsewhere.chmod(0o777)
    with pytest.raises(UserError, match="other users can replace its files, and a symbolic link"):
        refuse_foreign_project(project)
    elsewhere.chmod(0o755)
    owned(monkeypatch, elsewhere / "Snakefile", STRANGER)
    with pytest.raises(UserError, match=f"elsewhere/Snakefile: belongs to user {STRANGER}"):
        refuse_foreign_project(project)


def test_snakemakes_pickled_cache_is_code(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / ".snakemake/iocache").mkdir(parents=True)
    owned(monkeypatch, project / ".snakemake", STRANGER)
    with pytest.raises(UserError, match=rf"\.snakemake: belongs to user {STRANGER}"):
        refuse_foreign_project(project)


@pytest.mark.parametrize(("user", "sudo", "accepted"), [(0, "4712", True), (0, "4713", False), (0, "x", False),
                                                        (1000, "4712", False)])  # fmt: skip
def test_only_root_trusts_who_started_sudo(
    project: Path, monkeypatch: pytest.MonkeyPatch, user: int, sudo: str, accepted: bool
) -> None:
    """As git: `sudo drivelab run` in one's own project works."""
    monkeypatch.setenv("SUDO_UID", sudo)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert (STRANGER in private.trusted_users()) == accepted


def test_the_checkout_of_another_user_is_its_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever types ./drivelab there runs the owner's code already."""
    owned(monkeypatch, SHIPPED / "Snakefile", STRANGER)
    refuse_foreign_project(SHIPPED)
    refuse_foreign_file(SHIPPED / "config/demo.yaml")


def test_every_command_refuses_a_planted_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A marker in a parent folder, such as /tmp, makes a project of all folders below."""
    (tmp_path / MARKER).touch()
    (tmp_path / "Snakefile").write_text("raise SystemExit('planted')")
    (tmp_path / "mine").mkdir()
    root = find_root(tmp_path / "mine")
    assert root == tmp_path
    monkeypatch.setattr(places, "ROOT", root)
    owned(monkeypatch, tmp_path / MARKER, STRANGER)
    assert command.main(["run", "config/demo.yaml"]) == 2
    assert f"{MARKER}: belongs to user {STRANGER}" in capsys.readouterr().err


@pytest.mark.parametrize("planted", ["study.yaml", "profile"])
def test_a_study_or_profile_of_another_user_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], planted: str
) -> None:
    (tmp_path / "study.yaml").write_text("name: x")
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile/config.yaml").write_text("jobs: 1")
    monkeypatch.setattr(run, "in_project", Path)
    owned(monkeypatch, tmp_path / planted, STRANGER)
    assert command.main(["run", str(tmp_path / "study.yaml"), "--profile", str(tmp_path / "profile")]) == 2
    assert f"{tmp_path / planted}: belongs to user {STRANGER}" in capsys.readouterr().err
