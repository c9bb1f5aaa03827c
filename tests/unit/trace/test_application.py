"""config/applications.yaml: what is accepted, what is refused and how."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from drivelab.config.schema import ROOT
from drivelab.errors import UserError
from drivelab.trace import application

GOOD: dict[str, Any] = {"title": "t", "file_system": "ext4", "size": "56MiB", "command": ["true"]}


def test_the_shipped_file_is_good() -> None:
    spec = application.load(ROOT / "config" / "applications.yaml", "sqlite-inserts")
    assert spec.size_bytes <= 64 << 20
    assert (ROOT / "scripts" / "applications" / "sqlite_inserts.py").is_file()
    mapping = spec.to_mapping()
    assert mapping == {**mapping, "name": "sqlite-inserts", "file_system": "ext4", "size": "56MiB"}
    assert "title" not in mapping


def test_placeholders_stand_for_mount_project_and_interpreter() -> None:
    words = ["{python}", "-m", "x", "{project}/a", "--to={mount}/b", "{}"]
    spec = application.from_mapping("x", {**GOOD, "command": words}, "f.yaml")
    assert application._resolve(spec.command, Path("/mnt")) == [
        sys.executable, "-m", "x", f"{ROOT}/a", "--to=/mnt/b", "{}"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"command": "rm -rf /"}, r"key 'command': is no list of words"),
        ({"command": []}, r"key 'command': is no list of words"),
        ({"command": ["sh", 1]}, r"key 'command': is no list of words"),
        ({"command": ["ls", "{device}"]}, r"key 'command': '\{device\}' is unknown"),
        ({"set_up": ["sync"]}, r"key 'set_up'\[0\]: is no list of words"),
        ({"tear_down": "sync"}, r"key 'tear_down': is no list of commands"),
        ({"size": 5}, r"'5' is not a size"),
        ({"file_system": "ntfs"}, r"file_system 'ntfs' is not one of ext4"),
        ({"teardown": []}, r"unknown key 'teardown'"),
        ({"title": None}, None),
    ],
)
def test_bad_entries_are_refused_with_their_key(change: dict[str, Any], reason: str | None) -> None:
    body = {**GOOD, **change}
    if reason is None:
        del body["title"]
        reason = "key 'title' is missing"
    with pytest.raises(UserError, match=reason):
        application.from_mapping("x", body, "f.yaml")


def test_names_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "applications.yaml"
    path.write_text("one: {}\n")
    with pytest.raises(UserError, match=r"there is no application 'two'; it has: one"):
        application.load(path, "two")
    with pytest.raises(UserError, match=r"application '\.\./x': name it"):
        application.from_mapping("../x", GOOD, "f.yaml")
