"""Files that are whole after a kill or a loss of power."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from drivelab.core import jobs
from drivelab.core.files import sync_file_system, whole_folder, write_atomic


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
    monkeypatch.setattr(jobs, "sync_file_system", synced.append)
    with jobs.reported(str(tmp_path / "job.log")):
        (tmp_path / "table").touch()
        assert synced == []
    assert synced == [tmp_path]


def test_the_file_system_of_a_path_is_synchronised(tmp_path: Path) -> None:
    sync_file_system(tmp_path)
    with pytest.raises(FileNotFoundError):
        sync_file_system(tmp_path / "missing")


def test_a_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "figures"
    with suppress(ValueError), whole_folder(path) as folder:
        (folder / "half.svg").touch()
        raise ValueError
    assert not path.exists()
    for name in ("one.svg", "two.svg"):
        with whole_folder(path) as folder:
            (folder / name).touch()
        assert [file.name for file in sorted(tmp_path.rglob("*"))] == ["figures", name]


def test_a_job_ends_with_snakemake(tmp_path: Path) -> None:
    """Otherwise it would write the same files as the job of the next run."""
    os.mkfifo(tmp_path / "fifo")
    job = (
        "import os, signal, sys; from drivelab.core.jobs import reported\n"
        "with reported(sys.argv[1] + '/log'):\n"
        "    open(sys.argv[1] + '/fifo', 'w').write(str(os.getpid()))\n    signal.pause()"
    )
    start = "import subprocess, sys; subprocess.run([sys.executable, '-c', *sys.argv[1:]])"
    snakemake = subprocess.Popen([sys.executable, "-c", start, job, str(tmp_path)])
    process = os.pidfd_open(int((tmp_path / "fifo").read_text()))
    snakemake.kill()
    snakemake.wait()
    assert select.select([process], [], [], 60)[0], "it still runs"
    os.close(process)
