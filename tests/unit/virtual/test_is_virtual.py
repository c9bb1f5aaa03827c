"""A virtual drive is recognised by the kernel's facts, whatever path leads to it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drivelab.collect.inventory import is_virtual as is_recording_virtual
from drivelab.plan.plan import Plan
from drivelab.virtual import fuse


@pytest.fixture
def sys_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A /sys with loop1 over a virtual drive, loop2 over another file, and a real drive."""
    for name, file in (("loop1", "/run/drivelab/virtual/op7.drive"), ("loop2", "/home/a/image")):
        (tmp_path / f"class/block/{name}/loop").mkdir(parents=True)
        (tmp_path / f"class/block/{name}/loop/backing_file").write_text(f"{file}\n")
    (tmp_path / "class/block/sda").mkdir()
    monkeypatch.setattr(fuse, "mounts", lambda: [(Path("/run/drivelab/virtual/op7.drive"), 45)])
    return tmp_path


def test_only_a_file_of_drivelabs_file_system_is_a_virtual_drive(sys_root: Path) -> None:
    assert [name for name in ("loop1", "loop2", "sda", "gone") if fuse.is_virtual(name, sys_root)] == ["loop1"]


@pytest.mark.parametrize(
    ("planned", "identity", "virtual"),
    [(False, {"virtual": True}, True), (True, {}, True), (False, {"virtual": False}, False), (False, {}, False)],
)
def test_a_recording_of_a_virtual_drive_by_a_real_path_is_labelled(
    tmp_path: Path, planned: bool, identity: dict[str, Any], virtual: bool
) -> None:
    (tmp_path / "identity.json").write_text(json.dumps(identity))
    assert is_recording_virtual(tmp_path, cast("Plan", SimpleNamespace(virtual=planned))) == virtual
