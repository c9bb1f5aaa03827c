"""Folders that only this user and root can change: of state that a reboot ends, of caches, of a user's data."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from drivelab import native
from drivelab.cli.start import init
from drivelab.core import private
from drivelab.core.errors import UserError
from drivelab.core.private import make_private, own_run_directory, restrict_umask, run_directory

STRANGER = 4712
"""Number of another user."""


@pytest.fixture
def open_umask() -> Iterator[None]:
    """Let every user write to each file that is made without an explicit mode."""
    before = os.umask(0)
    yield
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_missing_folder_and_those_of_oneself_and_root_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setenv("DRIVELAB_RUN_DIR", str(folder))
        assert run_directory() == folder
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        assert run_directory() == tmp_path / "missing"
        monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
        assert run_directory() == tmp_path


def test_a_folder_that_every_user_can_replace_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir(0o700)
    tmp_path.chmod(0o777)
    with pytest.raises(UserError, match=f"every user can replace it, because every user can write to {tmp_path}"):
        make_private(folder)
    tmp_path.chmod(0o1777)  # as /tmp
    assert make_private(folder) == folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The predictable folder of a user who may not write to /run, in a /tmp of its own."""
    tmp_path.chmod(0o1777)
    monkeypatch.delenv("DRIVELAB_RUN_DIR", raising=False)
    monkeypatch.setattr(private, "_BASE", "/proc/drivelab")  # where no user may make a folder
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path / f"drivelab-{os.geteuid()}"


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("session", [None, "", "relative/path"])
def test_the_temporary_folder_is_made_for_this_user_only(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, session: str | None
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if session is not None:
        monkeypatch.setenv("XDG_RUNTIME_DIR", session)
    assert own_run_directory() == temporary
    assert mode(temporary) == 0o700


REASONS = {"folder of a stranger": "belongs to user", "link": "is a symbolic link, which may lead anywhere",
           "folder that all can write": r"other users can write to it \(mode 07..\).*Remove it",
           "folder that a group can write": r"other users can write to it \(mode 07..\)",
           "file": "is not a folder"}  # fmt: skip


@pytest.mark.parametrize("made", REASONS)
@pytest.mark.parametrize("named", [False, True])
def test_a_temporary_folder_that_another_user_made_is_refused(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, made: str, named: bool
) -> None:
    """And one that DRIVELAB_RUN_DIR names."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    if made == "link":
        temporary.symlink_to(Path.home())
    elif made == "file":
        temporary.touch()
    else:
        temporary.mkdir()
        temporary.chmod({"folder that all can write": 0o757, "folder that a group can write": 0o775}.get(made, 0o755))
    if made == "folder of a stranger":
        if os.geteuid() == 0:
            os.chown(temporary, STRANGER, -1)
        else:
            monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
            temporary = temporary.rename(temporary.with_name(f"drivelab-{STRANGER}"))
    if named:
        monkeypatch.setenv("DRIVELAB_RUN_DIR", str(temporary))
    with pytest.raises(UserError, match=f"{REASONS[made]}.*Set DRIVELAB_RUN_DIR to a folder that you own"):
        (run_directory if named else own_run_directory)()


@pytest.mark.usefixtures("open_umask")
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_private(tmp_path / "run/drivelab/places")
    assert [mode(tmp_path / name) for name in ("run", "run/drivelab", "run/drivelab/places")] == [0o755] * 3
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(init, "is_project", lambda: False)
    assert mode(init.project_or_home()) == 0o755


@pytest.mark.parametrize(("user", "umask", "wanted"), [(0, 0o000, 0o644), (0, 0o077, 0o600), (1000, 0o002, 0o664),
                                                       (1000, 0o000, 0o664)])  # fmt: skip
@pytest.mark.usefixtures("open_umask")
def test_no_file_is_made_that_every_user_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: int, umask: int, wanted: int
) -> None:
    os.umask(umask)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    restrict_umask()
    (tmp_path / "file").touch()
    assert mode(tmp_path / "file") == wanted


def test_the_cache_of_another_user_holds_no_program_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "drivelab").mkdir()
    (tmp_path / "drivelab").chmod(0o777)
    with pytest.raises(UserError, match=r"other users can write to it.*XDG_CACHE_HOME"):
        native._cache()
