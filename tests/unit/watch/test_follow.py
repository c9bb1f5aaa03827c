from __future__ import annotations

import shutil
from pathlib import Path

from drivelab.recording.writer import read_object
from drivelab.watch.follow import Follower


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_only_complete_lines_count(tmp_path: Path) -> None:
    path, follower = tmp_path / "log", Follower()
    assert follower.read(path) == []
    append(path, "one\ntw")
    assert follower.read(path) == ["one"]
    append(path, "o\nthree\n")
    assert follower.read(path) == ["two", "three"]
    assert follower.read(path) == []
    assert not follower.replaced


def test_a_file_that_moved_with_its_folder_is_followed(tmp_path: Path) -> None:
    part, final, follower = tmp_path / "run1.part", tmp_path / "run1", Follower()
    part.mkdir()
    append(part / "log", "one\n")
    assert follower.read(part / "log") == ["one"]
    part.rename(final)
    append(final / "log", "two\n")
    assert follower.read(part / "log") == []
    assert follower.read(final / "log") == ["two"]
    assert not follower.replaced


def test_a_replaced_file_is_read_from_its_beginning(tmp_path: Path) -> None:
    path, follower = tmp_path / "log", Follower()
    append(path, "one\n")
    follower.read(path)
    path.rename(tmp_path / "aside")
    assert follower.read(path) == []
    append(path, "first\nsecond\n")
    assert follower.read(path) == ["first", "second"]
    assert follower.replaced


def test_a_truncated_file_is_read_again(tmp_path: Path) -> None:
    path, follower = tmp_path / "log", Follower()
    append(path, "one\ntwo\n")
    follower.read(path)
    path.write_text("1\n")
    assert follower.read(path) == ["1"]
    assert follower.replaced


def test_only_the_last_complete_lines_of_a_long_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, "".join(f"line {number}\n" for number in range(1000)))
    follower = Follower(tail_bytes=20)
    assert follower.read(path) == ["line 998", "line 999"]
    append(path, "line 1000\n")
    assert follower.read(path) == ["line 1000"]


def test_lines_that_are_not_objects_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "log"
    append(path, '{"a": 1}\n[1]\nno json\n{"a": 2}\n')
    assert Follower().objects(path) == [{"a": 1}, {"a": 2}]
    assert read_object(tmp_path / "missing") == {}
    assert read_object(path) == {}
    shutil.rmtree(tmp_path)
    assert read_object(path) == {}
