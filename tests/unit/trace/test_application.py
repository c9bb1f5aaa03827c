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


def test_names_are_validated(tmp_path: Path) -> None:
    path = tmp_path / "applications.yaml"
    path.write_text("one: {}\n")
    with pytest.raises(UserError, match=r"application 'two' is unknown; choose one of one"):
        applications.load(path, "two")
