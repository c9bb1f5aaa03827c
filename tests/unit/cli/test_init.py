"""`drivelab init`, and which folder is the project's."""

from __future__ import annotations

from pathlib import Path

import pytest

from drivelab.cli.main import main
from drivelab.plan.places import MARKER, RESTORED_MARKER, SHIPPED, find_root


def test_project_has_all_that_studies_use(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "my drives"
    assert main(["init", str(folder)]) == 0
    for name in ("config", "traces", "profiles", "scripts/applications"):
        shipped = {path.relative_to(SHIPPED) for path in (SHIPPED / name).rglob("*") if "__pycache__" not in path.parts}
        assert {path.relative_to(folder) for path in (folder / name).rglob("*")} == shipped
    assert 'include: str(SHIPPED / "Snakefile")' in (folder / "Snakefile").read_text()
    assert f"  cd '{folder}'\n" in capsys.readouterr().out


def test_folder_with_files_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    for place, fault in ((tmp_path, "is not empty"), (tmp_path / "file", "is not a folder")):
        assert main(["init", str(place)]) == 2
        assert capsys.readouterr().err == f"drivelab: {place}: {fault}. Nothing was written. Name a new folder.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_nearest_project_above_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "project/results/deep"
    inner.mkdir(parents=True)
    assert find_root(inner) == SHIPPED
    (tmp_path / "project" / MARKER).touch()
    assert find_root(inner) == tmp_path / "project"
    assert find_root(inner, named=str(tmp_path)) == tmp_path


def test_checkout_within_a_project_is_its_own_project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / MARKER).touch()
    checkout = tmp_path / "checkout"
    monkeypatch.setattr("drivelab.plan.places.SHIPPED", checkout)
    assert find_root(checkout / "docs") == checkout


def test_restored_folder_is_no_project(tmp_path: Path) -> None:
    folder = tmp_path / "project/restored/theirs"
    folder.mkdir(parents=True)
    for path in (tmp_path / "project" / MARKER, folder / MARKER, folder / RESTORED_MARKER):
        path.touch()
    assert find_root(folder) == tmp_path / "project"
