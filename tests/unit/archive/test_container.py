"""The file of an archive: the same for the same members, read by tar, and no byte of it changes unnoticed."""

from __future__ import annotations

import hashlib
import io
import random
import subprocess
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivelab.archive.container import SEAL_BYTES, DamagedError, Reader, Writer, plain_name
from drivelab.archive.verify import ITSELF, verify
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
    """An archive of files, with checksums of those that are `listed`."""
    file = io.BytesIO()
    writer = Writer(file)
    add = lambda name, data: writer.add(f"study/{name}", io.BytesIO(data), len(data), mtime_s)  # noqa: E731
    digests = {name: add(name, data) for name, data in files.items()}
    if listed is not None:
        digests = {name: _sha256(data) for name, data in listed.items()}
    add(CHECKSUMS, lines_of(digests))
    writer.close()
    return file.getvalue()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


WHOLE = packed(FILES)
STARTS = [at for at in range(len(WHOLE)) if WHOLE.startswith(b"\x1f\x8b\x08\0\0\0\0\0", at)]
"""Of the members, in the order of FILES."""
IN_NOISE = STARTS[list(FILES).index("noise.bin")] + 1500


def found(data: bytes, folder: Path) -> dict[str, str]:
    """What `verify` says of an archive of these bytes."""
    path = folder / "archive.tar.gz"
    path.write_bytes(data)
    return verify(path).altered


def test_what_is_written_is_found_whole(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(WHOLE)
    verdict = verify(path)
    assert not verdict.altered
    assert not verdict.compared
    assert verdict.digest == _sha256(WHOLE)
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
        assert {one.mtime for one in tar} == {1_700_000_000}


def test_the_same_members_make_the_same_bytes() -> None:
    assert packed(FILES) == WHOLE
    assert packed(FILES, mtime_s=1_700_000_001) != WHOLE


@given(place=st.integers(0, len(WHOLE) - 1), bit=st.integers(0, 7))
def test_no_bit_flips_unnoticed(place: int, bit: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = bytearray(WHOLE)
    data[place] ^= 1 << bit
    assert found(bytes(data), tmp_path_factory.getbasetemp())


def test_not_one_byte_of_the_whole_file_is_left_out(tmp_path: Path) -> None:
    whole = packed({"a": b"abc", "b": b""})
    for place in range(len(whole)):
        data = bytearray(whole)
        data[place] ^= 1 << place % 8
        assert found(bytes(data), tmp_path), place


@given(length=st.integers(0, len(WHOLE) - 1))
def test_a_shortened_one_is_found(length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert found(WHOLE[:length], tmp_path_factory.getbasetemp())


@pytest.mark.parametrize("more", [b"\0", b"x" * 5000, WHOLE], ids=["byte", "bytes", "archive"])
def test_an_appended_byte_is_found(more: bytes, tmp_path: Path) -> None:
    assert ITSELF in found(WHOLE + more, tmp_path)


def test_what_is_altered_is_named_and_nothing_else(tmp_path: Path) -> None:
    data = bytearray(WHOLE)
    data[IN_NOISE] ^= 1
    assert found(bytes(data), tmp_path) == {ITSELF: "altered", "noise.bin": "altered"}


def test_swapped_members_are_found_though_each_is_whole(tmp_path: Path) -> None:
    first, second, third = STARTS[:3]
    swapped = WHOLE[:first] + WHOLE[second:third] + WHOLE[first:second] + WHOLE[third:]
    assert list(found(swapped, tmp_path)) == [ITSELF]


def test_members_that_are_missing_added_or_others_are_named(tmp_path: Path) -> None:
    listed = {**FILES, "gone": b"1", "text.json": b"other"}
    files = {**FILES, "new": b"2"}
    expected = {"gone": "missing", "new": "added", "text.json": "altered"}
    assert found(packed(files, listed=listed), tmp_path) == expected


def test_whoever_makes_all_checksums_anew_is_found_by_the_one_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(packed({**FILES, "text.json": b"{}"}))
    assert not verify(path).altered
    assert ITSELF in verify(path, _sha256(WHOLE)).altered
    side = tmp_path / "archive.tar.gz.sha256"
    side.write_text(f"{_sha256(WHOLE)}  archive.tar.gz\n")
    assert ITSELF in verify(path).altered
    path.write_bytes(WHOLE)
    assert verify(path).compared
    assert not verify(path).altered
    side.write_text("nothing\n")
    assert str(side) in verify(path).altered


def test_a_file_that_grew_or_shrank_meanwhile_is_refused() -> None:
    for size in (2, 4):
        with pytest.raises(DamagedError, match="file"):
            Writer(io.BytesIO()).add("file", io.BytesIO(b"123"), size, 0)


def test_every_byte_is_told_once_also_over_damage(tmp_path: Path) -> None:
    data = bytearray(WHOLE)
    data[IN_NOISE] ^= 1
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(data)
    told: list[int] = []
    with path.open("rb") as file:
        reader = Reader(file, told.append)
        for member in reader.members():
            try:
                list(member.chunks)
            except DamagedError:
                continue
        assert reader.digest() == (_sha256(bytes(data)), False)
    assert sum(told) == len(WHOLE) - SEAL_BYTES


@pytest.mark.parametrize("name", ["../a", "/a", "a/../b", "a//b", "", ".", "a/", "a\0b"])
def test_a_name_that_leads_elsewhere_is_not_plain(name: str) -> None:
    assert not plain_name(name)
    assert plain_name("a/b..c/.d")
