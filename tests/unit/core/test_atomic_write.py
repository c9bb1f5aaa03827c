"""Files that are whole after a kill or a loss of power."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivelab.core import errors, files
from drivelab.core.files import sync_file_system, write_atomic


def test_content_is_on_disk_before_the_name_and_the_name_before_the_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = tmp_path / "seal.json", []
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        file = Path(f"/proc/self/fd/{descriptor}").readlink()
        seen.append((file.name, path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(path, "new")
    assert seen == [(".seal.json.part", "old"), (tmp_path.name, "new")]
    assert [file.name for file in tmp_path.iterdir()] == ["seal.json"]


def test_what_does_not_last_is_not_forced_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: pytest.fail("fsync"))
    write_atomic(tmp_path / "status.json", b"now", lasting=False)
    assert (tmp_path / "status.json").read_bytes() == b"now"


def test_a_failed_sync_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "consent.json"
    path.write_text("old")

    def fsync(descriptor: int) -> None:
        raise OSError("Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match="Input/output error"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["consent.json"]


def test_the_files_of_a_job_are_on_disk_when_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(files, "sync_file_system", synced.append)
    with errors.reported(str(tmp_path / "job.log")):
        (tmp_path / "table").touch()
        assert synced == []
    assert synced == [tmp_path]


def test_the_file_system_of_a_path_is_synchronised(tmp_path: Path) -> None:
    sync_file_system(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "missing")
