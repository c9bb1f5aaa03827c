"""Restoring writes only verified files, with their names and times, and overwrites nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest

from drivelab.archive.restore import restore
from drivelab.archive.tar import Writer
from drivelab.core.errors import UserError
from drivelab.plan.places import RESTORED_MARKER, restored_folder
from drivelab.recording.checksums import CHECKSUMS, lines_of

FILES = {"config/study.yaml": b"name: a\n", "results/recordings/a": os.urandom(5000), "results/logs/b": b""}
OWN = {"README.txt": b"read me", "versions/requirements.txt": b"numpy"}
MTIME_S = 1_700_000_000


def archive(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "archive.tar.gz"
    digests = {}
    with path.open("wb") as file:
        writer = Writer(file)
        for name, data in files.items():
            digests[name] = writer.add(f"study/{name}", io.BytesIO(data), len(data), MTIME_S)
        sums = lines_of(digests)
        writer.add(f"study/{CHECKSUMS}", io.BytesIO(sums), len(sums), MTIME_S)
        writer.close()
    return path


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the marker of a restored study."""
    files = (path for path in folder.rglob("*") if path.is_file() and path != folder / RESTORED_MARKER)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_study_files_are_restored_with_their_times(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = restore(archive(tmp_path, {**FILES, **OWN}), folder)
    assert (done.written, done.there, done.elsewhere, done.left_out) == (3, 0, 0, ())
    assert files_in(folder) == FILES
    files = [path for path in folder.rglob("*") if path.is_file() and path != folder / RESTORED_MARKER]
    assert {path.stat().st_mtime for path in files} == {MTIME_S}
    assert {path.stat().st_mode & 0o7133 for path in files} == {0}, "setuid, executable, or writable by others"
    assert restored_folder(folder / "results") == folder


def test_second_restore_writes_only_missing_files(tmp_path: Path) -> None:
    folder, path = tmp_path / "new", archive(tmp_path, FILES)
    restore(path, folder)
    (folder / "results/logs/b").unlink()
    done = restore(path, folder)
    assert (done.written, done.there) == (1, 2)
    assert files_in(folder) == FILES


@pytest.mark.parametrize("kind", ["other", "folder", "link", "blocked"])
def test_obstacle_is_kept_and_nothing_is_written(kind: str, tmp_path: Path) -> None:
    folder, name, path = tmp_path / "new", "results/logs/b", archive(tmp_path, FILES)
    restore(path, folder)
    (folder / name).unlink()
    if kind == "blocked":
        (folder / "results/logs").rmdir()
        (folder / "results/logs").write_text("mine")
    else:
        if kind == "other":
            (folder / name).write_text("mine")
        elif kind == "folder":
            (folder / name).mkdir()
        else:
            (folder / name).symlink_to("nowhere")
    before = files_in(folder)
    with pytest.raises(UserError, match="are not overwritten; name another folder with --to"):
        restore(path, folder)
    assert files_in(folder) == before


def test_restore_to_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="file: is not a folder"):
        restore(archive(tmp_path, FILES), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("digest", ["abc", "", "g" * 64, "0" * 63])
def test_invalid_digest_is_refused(digest: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a SHA-256; give the 64 hexadecimal digits"):
        restore(archive(tmp_path, FILES), tmp_path / "new", digest)


def test_altered_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, FILES)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"altered since it was written .* nothing was restored"):
        restore(path, tmp_path / "new")
    path = archive(tmp_path, FILES)
    with pytest.raises(UserError, match="altered since it was written"):
        restore(path, tmp_path / "new", "0" * 64)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "a//b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leads out of its folder"):
        restore(archive(tmp_path, {**FILES, name: b"evil"}), tmp_path / "deep/new")
    assert not (tmp_path / "deep").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_devices_and_folders_are_refused(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("study/results/link")
    info.type, info.linkname = kind, "/etc/passwd"
    sums = lines_of({"results/link": hashlib.sha256(b"").hexdigest()})
    plain = tarfile.TarInfo(f"study/{CHECKSUMS}")
    plain.size = len(sums)
    tar = info.tobuf() + plain.tobuf() + sums + bytes(-len(sums) % 512) + bytes(1024)
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(gzip.compress(tar))
    with pytest.raises(UserError, match=r"altered since it was written \(results/link\)"):
        restore(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_interrupted_restore_keeps_whole_files_and_continues(tmp_path: Path) -> None:
    folder, counts = tmp_path / "new", []

    def interrupt(count: int) -> None:
        counts.append(count)
        if sum(counts) > 1.5 * size:
            raise KeyboardInterrupt

    files = {f"results/logs/{number}": os.urandom(100_000) for number in range(6)}
    path = archive(tmp_path, files)
    size = path.stat().st_size
    with pytest.raises(KeyboardInterrupt):
        restore(path, folder, watch=interrupt)
    kept = files_in(folder)
    assert 0 < len(kept) < len(files)
    assert kept.items() < files.items()
    assert restore(path, folder).there == len(kept)
    assert files_in(folder) == files
