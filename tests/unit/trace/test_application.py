"""Validation of config/applications.yaml."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

from drivelab.core.errors import UserError
from drivelab.plan.places import ROOT
from drivelab.plan.yaml_file import load_yaml
from drivelab.trace.capturing import applications

GOOD: dict[str, Any] = {"title": "t", "file_system": "ext4", "size": "56MiB", "command": ["true"]}


SHIPPED = ROOT / "config" / "applications.yaml"


@pytest.mark.parametrize("name", sorted(load_yaml(SHIPPED)))
def test_shipped_applications_are_valid(name: str) -> None:
    spec = applications.load(SHIPPED, name)
    assert 32 << 20 <= spec.size_bytes <= 512 << 20
    for command in (*spec.set_up, spec.command, *spec.tear_down):
        for argument in command:
            if argument.startswith("{project}"):
                assert Path(argument.replace("{project}", str(ROOT))).is_file()
    mapping = spec.to_mapping()
    assert mapping["name"] == name
    assert not mapping.keys() & {"title", "requires"}, "keys that do not change the trace"


def test_only_a_cold_cache_is_in_the_mapping() -> None:
    assert "cache" not in applications.from_mapping("x", GOOD, "f.yaml").to_mapping()
    assert applications.from_mapping("x", {**GOOD, "cache": "cold"}, "f.yaml").to_mapping()["cache"] == "cold"


def test_missing_programs_are_reported_with_their_packages(tmp_path: Path) -> None:
    (tmp_path / "15" / "bin").mkdir(parents=True)
    (tmp_path / "15" / "bin" / "initdb").touch()
    requires = {"sh": "dash", "nosuch": "some-package", f"{tmp_path}/*/bin/initdb": "a", f"{tmp_path}/*/bin/other": "b"}
    spec = applications.from_mapping("x", {**GOOD, "requires": requires}, "f.yaml")
    expected = (
        f"'x' needs nosuch, {tmp_path}/*/bin/other, not installed here. On Debian: apt-get install some-package b."
    )
    with pytest.raises(UserError, match=re.escape(expected)):
        applications.refuse_missing(spec)
    out = tmp_path / "x.parquet"
    with pytest.raises(UserError, match="Nothing was written"):
        applications.run_captured("x", spec, "/dev/nosuchdevice", out)
    assert list(tmp_path.glob("*.capture.*")) == []


def test_placeholders_are_replaced() -> None:
    command = ["{python}", "-m", "x", "{project}/a", "--to={mount}/b", "{}"]
    spec = applications.from_mapping("x", {**GOOD, "command": command}, "f.yaml")
    assert applications.resolve(spec.command, Path("/mnt")) == [
        sys.executable, "-P", "-m", "x", f"{ROOT}/a", "--to=/mnt/b", "{}"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"command": "rm -rf /"}, r"key 'command': is not a list of strings"),
        ({"command": []}, r"key 'command': is not a list of strings"),
        ({"command": ["sh", 1]}, r"key 'command': is not a list of strings"),
        ({"command": ["ls", "{device}"]}, r"key 'command': '\{device\}' is unknown"),
        ({"set_up": ["sync"]}, r"key 'set_up'\[0\]: is not a list of strings"),
        ({"tear_down": "sync"}, r"key 'tear_down': is not a list of commands"),
        ({"size": 5}, r"'5' is not a size"),
        ({"file_system": "ntfs"}, r"file_system 'ntfs' is not one of ext4, xfs, btrfs"),
        ({"file_system": "xfs"}, r"key 'size' is 56MiB; xfs needs at least 300MiB"),
        ({"cache": "lukewarm"}, r"cache 'lukewarm' is not one of cold, warm"),
        ({"requires": ["git"]}, r"key 'requires' is not a mapping"),
        ({"requires": {"git": 1}}, r"key 'requires' is not a mapping"),
        ({"teardown": []}, r"unknown key 'teardown'"),
        ({"title": None}, None),
    ],
)
def test_invalid_entries_are_refused_with_their_key(change: dict[str, Any], reason: str | None) -> None:
    body = {**GOOD, **change}
    if reason is None:
        del body["title"]
        reason = "key 'title' is missing"
    with pytest.raises(UserError, match=reason):
        applications.from_mapping("x", body, "f.yaml")


def test_names_are_validated(tmp_path: Path) -> None:
    path = tmp_path / "applications.yaml"
    path.write_text("one: {}\n")
    with pytest.raises(UserError, match=r"application 'two' is unknown; choose one of one"):
        applications.load(path, "two")
    with pytest.raises(UserError, match=r"application '\.\./x': use only lower-case"):
        applications.from_mapping("../x", GOOD, "f.yaml")
