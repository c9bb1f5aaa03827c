"""The file of an archive: reproducible, readable by tar, and every changed file is detected."""

from __future__ import annotations

import gzip
import hashlib
import io
import random
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.archive.restore import restore
from drivelab.archive.tar import DamagedError, Writer, plain_name
from drivelab.archive.verify import ITSELF, verify
from drivelab.core.errors import UserError
from drivelab.recording.checksums import CHECKSUMS, lines_of

LONG = "/".join(["a-folder-with-a-rather-long-name"] * 8) + "/file"
FILES = {
    "empty": b"",
    "text.json": b'{"iops": 1234}\n' * 40,
    "noise.bin": random.Random(1).randbytes(3000),
    "größe µs.txt": b"x",
    LONG: b"deep",
    "block": bytes(512),
}


def packed(files: dict[str, bytes], *, listed: dict[str, bytes] | None = None, mtime_s: int = 1_700_000_000) -> bytes:
    """Return an archive of files, with checksums of the `listed` ones."""
    file = io.BytesIO()
    writer = Writer(file)
    add = lambda name, data: writer.add(f"study/{name}", io.BytesIO(data), len(data), mtime_s)  # noqa: E731
    digests = {name: add(name, data) for name, data in files.items()}
    if listed is not None:
        digests = {name: sha256(data) for name, data in listed.items()}
    add(CHECKSUMS, lines_of(digests))
    writer.close()
    return file.getvalue()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


WHOLE = packed(FILES)


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
    assert packed(FILES) == WHOLE
    assert packed(FILES, mtime_s=1_700_000_001) != WHOLE


@given(place=st.integers(10, len(WHOLE) - 1), bit=st.integers(0, 7))
def test_every_flipped_bit_is_detected(place: int, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Except in the header of gzip, of which nothing is used."""
    data = bytearray(WHOLE)
    data[place] ^= 1 << bit
    assert alterations(bytes(data), tmp_path_factory.getbasetemp())


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
    assert alterations(packed(files, listed=listed), tmp_path) == expected


def test_digest_kept_apart_reveals_recomputed_checksums(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(packed({**FILES, "text.json": b"{}"}))
    assert not verify(path).altered
    assert ITSELF in verify(path, sha256(WHOLE)).altered
    side = tmp_path / "archive.tar.gz.sha256"
    side.write_text(f"{sha256(WHOLE)}  archive.tar.gz\n")
    assert ITSELF in verify(path).altered
    path.write_bytes(WHOLE)
    assert verify(path).compared
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
