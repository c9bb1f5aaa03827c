"""The work folder of a replay: drivelab neither follows nor removes files of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.run.replays.replay_folder import folder_of


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out.parquet"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where the work folder of `output` is made."""
    return tmp_path / ".out.parquet.replay"


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    """A folder with a file of the user's, and a lock file that any program may have made."""
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine")
    (folder / "replay.lock").touch()
    return folder


def refused(output: Path, words: str) -> None:
    with pytest.raises(UserError, match=words), folder_of(output):
        pytest.fail("the folder was used")


def test_a_link_to_a_folder_is_not_followed(output: Path, place: Path, precious: Path) -> None:
    place.symlink_to(precious)
    refused(output, "is a link or a file")
    assert place.is_symlink()
    assert (precious / "thesis.txt").read_text() == "mine"


def test_a_folder_with_a_lock_file_of_another_program_is_kept(output: Path, place: Path, precious: Path) -> None:
    precious.rename(place)
    refused(output, "is not a work folder of drivelab replay. It was not changed")
    assert (place / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize("kind", ["symbolic", "hard", "fifo", "folder"])
def test_the_lock_file_is_never_another_file(kind: str, output: Path, place: Path, tmp_path: Path) -> None:
    target, lock = tmp_path / "target", place / "replay.lock"
    target.write_text("")
    place.mkdir()
    if kind == "symbolic":
        lock.symlink_to(target)
    elif kind == "hard":
        lock.hardlink_to(target)
    elif kind == "fifo":
        os.mkfifo(lock)
    else:
        lock.mkdir()
    refused(output, "is not a work folder of drivelab replay")
    assert target.read_text() == ""
    assert os.path.lexists(lock)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of another user")
def test_a_folder_of_another_user_is_kept(output: Path, place: Path) -> None:
    place.mkdir()
    os.chown(place, 65534, 65534)
    refused(output, "belongs to another user")
    assert place.is_dir()


def test_a_link_inside_the_work_folder_is_removed_and_its_target_kept(
    output: Path, place: Path, precious: Path
) -> None:
    with folder_of(output) as folder:
        (folder / "link").symlink_to(precious)
        (folder / "capture").mkdir()
        (folder / "capture/link").symlink_to(precious)
    assert not place.exists()
    assert (precious / "thesis.txt").read_text() == "mine"


def test_a_folder_that_replaced_the_work_folder_is_kept(output: Path, place: Path, precious: Path) -> None:
    with folder_of(output) as folder:
        folder.rename(folder.with_name("moved"))
        precious.rename(place)
    assert (place / "thesis.txt").read_text() == "mine"


def test_what_a_killed_replay_left_is_removed(output: Path, place: Path) -> None:
    with folder_of(output) as folder:
        mark = (folder / "replay.lock").read_bytes()
    for content in (mark, mark[:5], b""):
        place.mkdir()
        (place / "replay.lock").write_bytes(content)
        if content == mark:
            (place / "trace.schedule").write_bytes(b"x")
        with folder_of(output) as folder:
            assert [path.name for path in folder.iterdir()] == ["replay.lock"]
        assert not place.exists()
