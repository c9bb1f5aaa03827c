"""The folder for state that a reboot ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drivelab.core.errors import UserError
from drivelab.core.files import run_directory


def test_missing_folder_or_own_folder_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setenv("DRIVELAB_RUN_DIR", str(folder))
        assert run_directory() == folder


def test_folder_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    owner = tmp_path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    if owner == 0:
        assert run_directory() == tmp_path
        os.chown(tmp_path, 4712, -1)
        owner = 4712
    with pytest.raises(UserError, match=f"belongs to user {owner}.*DRIVELAB_RUN_DIR"):
        run_directory()
