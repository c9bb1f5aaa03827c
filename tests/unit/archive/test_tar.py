"""The file of an archive is reproducible, every change is detected, and only verified files are restored."""

from __future__ import annotations

import gzip
import io
import os
import random
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_archives import MTIME_S, archive, archived, packed, sha256

from drivelab.archive.restore import restore
from drivelab.archive.tar import DamagedError, Writer, plain_name
from drivelab.archive.verify import ITSELF, verify
from drivelab.core.errors import UserError
from drivelab.plan.places import RESTORED_MARKER, restored_folder
from drivelab.recording.checksums import CHECKSUMS

LONG = "/".join(["a-folder-with-a-rather-long-name"] * 8) + "/file"
FILES = {
    "empty": b"",
    "text.json": b'{"iops": 1234}\n' * 40,
    "noise.bin": random.Random(1).randbytes(3000),
    "größe µs.txt": b"x",
    LONG: b"deep",
    "block": bytes(512),
}


WHOLE = archived(FILES)


def alterations(data: bytes, folder: Path) -> dict[str, str]:
    """Return the alterations that `verify` finds in an archive of these bytes."""
    path = folder / "archive.tar.gz"
    path.write_bytes(data)
    return verify(path).altered


def test_unaltered_archive_is_valid(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(WHOLE)
    verdict = verify(path)
    assert not verdict.altered
    assert not verdict.compared
    assert verdict.digest == sha256(WHOLE)
    assert set(verdict.digests) == set(FILES)


def test_tar_and_gzip_read_it(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(WHOLE)
    subprocess.run(["gzip", "-t", path], check=True)
    subprocess.run(["tar", "xzf", path, "-C", tmp_path], check=True)
    for name, data in FILES.items():
        assert (tmp_path / "study" / name).read_bytes() == data
    subprocess.run(["sha256sum", "--check", "--quiet", CHECKSUMS], cwd=tmp_path / "study", check=True)
    with tarfile.open(path) as tar:
        assert {member.mtime for member in tar} == {1_700_000_000}


def test_an_archive_of_another_tar_is_the_same(tmp_path: Path) -> None:
    """An archive of an earlier version: a gzip member for each file, and an empty last one with a comment."""
    raw = gzip.decompress(WHOLE)
    pieces = [gzip.compress(raw[at : at + 1536]) for at in range(0, len(raw), 1536)]
    seal = b"\x1f\x8b\x08\x10" + bytes(4) + b"\x00\xff" + b"SHA-256: 0" + b"\x00\x03\x00" + bytes(8)
    assert alterations(b"".join([*pieces, seal]), tmp_path) == {}


def test_same_members_give_the_same_bytes() -> None:
    assert archived(FILES) == WHOLE
    assert archived(FILES, mtime_s=1_700_000_001) != WHOLE


@given(place=st.integers(10, len(WHOLE) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_detected(place: int, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Except in the header of gzip, of which nothing is used, and where the compressed form has a second way."""
    data = bytearray(WHOLE)
    data[place] ^= 1 << bit
    assert alterations(bytes(data), tmp_path_factory.getbasetemp()) or unpacked(data) == unpacked(WHOLE)


def unpacked(data: bytes | bytearray) -> bytes | None:
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error):
        return None


@given(length=st.integers(0, len(WHOLE) - 1))
def test_truncation_is_detected(length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert alterations(WHOLE[:length], tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("more", [b"x", b"x" * 5000, WHOLE], ids=["byte", "bytes", "archive"])
def test_appended_bytes_are_detected(more: bytes, tmp_path: Path) -> None:
    assert ITSELF in alterations(WHOLE + more, tmp_path)


def test_missing_added_and_altered_members_are_named(tmp_path: Path) -> None:
    listed = {**FILES, "gone": b"1", "text.json": b"other"}
    files = {**FILES, "new": b"2"}
    expected = {"gone": "missing", "new": "added", "text.json": "altered"}
    assert alterations(archived(files, listed=listed), tmp_path) == expected


def test_digest_kept_apart_reveals_recomputed_checksums(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(archived({**FILES, "text.json": b"{}"}))
    assert not verify(path).altered
    assert ITSELF in verify(path, sha256(WHOLE)).altered
    side = tmp_path / "archive.tar.gz.sha256"
    side.write_text(f"{sha256(WHOLE)}  archive.tar.gz\n")
    assert ITSELF in verify(path).altered
    path.write_bytes(WHOLE)
    assert verify(path).beside
    assert not verify(path).compared
    assert verify(path, sha256(WHOLE)).compared
    assert not verify(path).altered
    side.write_text("nothing\n")
    assert str(side) in verify(path).altered


def test_file_of_another_size_is_refused() -> None:
    for size in (2, 4):
        with pytest.raises(DamagedError, match="file"):
            Writer(io.BytesIO()).add("file", io.BytesIO(b"123"), size, 0)


def test_every_byte_is_counted_once_despite_damage(tmp_path: Path) -> None:
    path, counts = tmp_path / "archive.tar.gz", []
    path.write_bytes(WHOLE[: len(WHOLE) // 2] + bytes(100) + WHOLE[len(WHOLE) // 2 :])
    verdict = verify(path, watch=counts.append)
    assert "cannot be read behind" in verdict.altered[ITSELF]
    assert verdict.digest == sha256(path.read_bytes())
    assert sum(counts) == path.stat().st_size


def test_a_folder_is_refused_with_what_to_type(tmp_path: Path) -> None:
    for action in (verify, lambda path: restore(path, tmp_path / "new")):
        with pytest.raises(UserError, match="is a folder, not an archive"):
            action(tmp_path)


@pytest.mark.parametrize("name", ["../a", "/a", "a/../b", "a//b", "", ".", "a/", "a\0b"])
def test_name_outside_the_folder_is_not_plain(name: str) -> None:
    assert not plain_name(name)
    assert plain_name("a/b..c/.d")


RESTORED = {"config/study.yaml": b"name: a\n", "results/recordings/a": os.urandom(5000), "results/logs/b": b""}
OWN = {"README.txt": b"read me", "versions/requirements.txt": b"numpy"}


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the marker of a restored study."""
    files = (path for path in folder.rglob("*") if path.is_file() and path != folder / RESTORED_MARKER)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_study_files_are_restored_with_their_times(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    done = restore(archive(tmp_path, {**RESTORED, **OWN}), folder)
    assert (done.written, done.elsewhere, done.left_out) == (3, 0, ())
    assert files_in(folder) == RESTORED
    files = [path for path in folder.rglob("*") if path.is_file() and path != folder / RESTORED_MARKER]
    assert {path.stat().st_mtime for path in files} == {MTIME_S}
    assert {path.stat().st_mode & 0o7133 for path in files} == {0}, "setuid, executable, or writable by others"
    assert restored_folder(folder / "results") == folder


def test_restore_to_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="file: is not a folder"):
        restore(archive(tmp_path, RESTORED), tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("digest", ["abc", "", "g" * 64, "0" * 63])
def test_invalid_digest_is_refused(digest: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a SHA-256; give the 64 hexadecimal digits"):
        restore(archive(tmp_path, RESTORED), tmp_path / "new", digest)


def test_altered_archive_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, RESTORED)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=r"altered since it was written .* nothing was restored"):
        restore(path, tmp_path / "new")
    path = archive(tmp_path, RESTORED)
    with pytest.raises(UserError, match="altered since it was written"):
        restore(path, tmp_path / "new", "0" * 64)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["../evil", "a/../../evil", "/etc/evil", "a//b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="leads out of its folder"):
        restore(archive(tmp_path, {**RESTORED, name: b"evil"}), tmp_path / "deep/new")
    assert not (tmp_path / "deep").exists()
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_devices_and_folders_are_refused(kind: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo("study/results/link")
    info.type, info.linkname = kind, "/etc/passwd"
    path = packed(tmp_path, [(info, b"")], {"results/link": sha256(b"")})
    with pytest.raises(UserError, match=r"altered since it was written \(results/link\)"):
        restore(path, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_interrupted_restore_leaves_nothing(tmp_path: Path) -> None:
    folder, counts = tmp_path / "new", []

    def interrupt(count: int) -> None:
        counts.append(count)
        if sum(counts) > 1.5 * size:
            assert any(tmp_path.glob(".new.*/results/logs/*"))
            raise KeyboardInterrupt

    files = {f"results/logs/{number}": os.urandom(100_000) for number in range(6)}
    path = archive(tmp_path, files)
    size = path.stat().st_size
    with pytest.raises(KeyboardInterrupt):
        restore(path, folder, watch=interrupt)
    assert list(tmp_path.iterdir()) == [path]
    restore(path, folder)
    assert files_in(folder) == files
