"""A file system that stays busy is detached, and the message names it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from drivelab.core import programs
from drivelab.trace.capturing import mounts


class Kernel:
    """Stands in for mount points and umount, which says busy `busy` times."""

    def __init__(self, mount: Path, busy: int) -> None:
        self.mount, self.busy, self.mounted = mount, busy, True
        self.commands: list[list[str]] = []

    def run(self, command: Sequence[str], **_: Any) -> SimpleNamespace:
        self.commands.append(list(command))
        if "--lazy" not in command and self.busy > 0:
            self.busy -= 1
            return SimpleNamespace(returncode=32, stdout="", stderr=f"umount: {self.mount}: target is busy.\n")
        self.mounted = False
        return SimpleNamespace(returncode=0, stdout="", stderr="")


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The journal of a killed process with its mount point."""
    mount = tmp_path / "mount.x"
    mount.mkdir()
    journal = tmp_path / "mount-1-x.json"
    journal.write_text(json.dumps({"pid": 2**22 + 1, "started": 1, "mount": str(mount)}))
    return mount


def recover(left: Path, busy: int, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    kernel = Kernel(left, busy)
    monkeypatch.setattr(programs, "run", kernel.run)
    monkeypatch.setattr(mounts.os.path, "ismount", lambda path: kernel.mounted)
    clock_s = iter(range(1000))
    monkeypatch.setattr(mounts, "time", SimpleNamespace(monotonic=lambda: next(clock_s), sleep=lambda s: None))
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(left.parent))
    mounts.recover_mounts()
    assert not kernel.mounted
    assert list(left.parent.iterdir()) == [], "mount point and journal are gone"
    return kernel


def test_a_busy_file_system_is_tried_again(
    left: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = recover(left, 3, monkeypatch)
    assert kernel.commands == [["umount", str(left)]] * 4
    assert capsys.readouterr().err == ""


def test_a_file_system_that_stays_busy_is_detached_and_named(
    left: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = recover(left, 10**6, monkeypatch)
    assert kernel.commands[-1] == ["umount", "--lazy", str(left)]
    assert capsys.readouterr().err == (
        f"drivelab: unmounting {left} failed with status 32: umount: {left}: target is busy. It was detached from the "
        "folder, and its drive stays in use until the programs that use it end. End them before you use the drive.\n"
    )
