"""config/applications.yaml: what is accepted, what is refused and how."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from drivelab.config.schema import ROOT
from drivelab.config.yaml_file import load_yaml
from drivelab.errors import UserError
from drivelab.trace import application

GOOD: dict[str, Any] = {"title": "t", "file_system": "ext4", "size": "56MiB", "command": ["true"]}


SHIPPED = ROOT / "config" / "applications.yaml"


@pytest.mark.parametrize("name", sorted(load_yaml(SHIPPED)))
def test_what_is_shipped_is_good(name: str) -> None:
    spec = application.load(SHIPPED, name)
    assert 32 << 20 <= spec.size_bytes <= 512 << 20
    for command in (*spec.set_up, spec.command, *spec.tear_down):
        for word in command:
            if word.startswith("{project}"):
                assert Path(word.replace("{project}", str(ROOT))).is_file()
    mapping = spec.to_mapping()
    assert mapping["name"] == name
    assert not mapping.keys() & {"title", "requires"}, "they do not change what is traced"


def test_a_warm_cache_leaves_the_mapping_as_it_was_before_there_was_a_choice() -> None:
    assert "cache" not in application.from_mapping("x", GOOD, "f.yaml").to_mapping()
    assert application.from_mapping("x", {**GOOD, "cache": "cold"}, "f.yaml").to_mapping()["cache"] == "cold"


def test_missing_programs_are_told_with_their_packages(tmp_path: Path) -> None:
    (tmp_path / "15" / "bin").mkdir(parents=True)
    (tmp_path / "15" / "bin" / "initdb").touch()
    requires = {"sh": "dash", "nosuch": "some-package", f"{tmp_path}/*/bin/initdb": "a", f"{tmp_path}/*/bin/other": "b"}
    spec = application.from_mapping("x", {**GOOD, "requires": requires}, "f.yaml")
    expected = (
        f"'x' needs nosuch, {tmp_path}/*/bin/other, not installed here; on Debian: apt-get install some-package b."
    )
    with pytest.raises(UserError, match=re.escape(expected)):
        application.refuse_missing(spec)
    out = tmp_path / "x.parquet"
    with pytest.raises(UserError, match="Nothing was written"):
        application.run_captured("x", spec, "/dev/nosuchdevice", out)
    assert list(tmp_path.glob("*.capture.*")) == []


def test_placeholders_stand_for_mount_project_and_interpreter() -> None:
    words = ["{python}", "-m", "x", "{project}/a", "--to={mount}/b", "{}"]
    spec = application.from_mapping("x", {**GOOD, "command": words}, "f.yaml")
    assert application.resolve(spec.command, Path("/mnt")) == [
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
        ({"file_system": "ntfs"}, r"file_system 'ntfs' is not one of ext4, xfs, btrfs"),
        ({"file_system": "xfs"}, r"key 'size' is 56MiB, xfs needs 300MiB at least"),
        ({"cache": "lukewarm"}, r"cache 'lukewarm' is not one of cold, warm"),
        ({"requires": ["git"]}, r"key 'requires' is no mapping"),
        ({"requires": {"git": 1}}, r"key 'requires' is no mapping"),
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
