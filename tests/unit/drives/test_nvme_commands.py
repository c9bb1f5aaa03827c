"""The character device of NVMe commands belongs to the approved namespace, or nothing is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from drivelab.core.errors import UserError
from drivelab.drives.approved import HeldDevice
from drivelab.drives.identified import Identity
from drivelab.drives.node import Node
from drivelab.drives.nvme import can_crash, character_name, open_character_device


@pytest.fixture
def null() -> Iterator[int]:
    descriptor = os.open("/dev/null", os.O_RDONLY)
    yield descriptor
    os.close(descriptor)


def held(name: str, descriptor: int) -> HeldDevice:
    opened = Node(descriptor, name, "259:0", "1")
    return HeldDevice(f"/dev/{name}", name, "S1", None, opened, identity=Identity("S1", 512))


@pytest.mark.parametrize(
    ("block", "character"),
    [("nvme0n1", "ng0n1"), ("nvme12n34", "ng12n34"), ("nvme0n1p1", None), ("sda", None), ("nvme0", None)],
)
def test_only_a_namespace_has_one(block: str, character: str | None) -> None:
    assert character_name(block) == character


@pytest.mark.parametrize(
    ("release", "crashes"),
    [("6.1.0-56-amd64", True), ("6.4.16", True), ("6.5.0", False), ("6.18.44-x", False), ("10.0", False), ("x", True)],
)
def test_polling_in_threads_needs_a_kernel(release: str, crashes: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.uname", lambda: SimpleNamespace(release=release))
    assert can_crash(2, polled=True, nvme=True) == crashes
    assert not can_crash(1, polled=True, nvme=True)
    assert not can_crash(2, polled=False, nvme=True)
    assert not can_crash(2, polled=True, nvme=False)


@pytest.mark.parametrize(
    ("name", "node", "reason"),
    [
        ("loop0", None, "/dev/loop0 is not a whole NVMe namespace"),
        ("nvme0n1", None, r"ng0n1, which passes NVMe commands to /dev/nvme0n1, cannot be opened \(No such file"),
        ("nvme0n1", "/dev/null", "/dev/ng0n1 is not the character device of /dev/nvme0n1. Nothing was written"),
        ("nvme0n1", "a file", "/dev/ng0n1 is not the character device of /dev/nvme0n1. Nothing was written"),
    ],
)
def test_anything_else_is_refused(tmp_path: Path, null: int, name: str, node: str | None, reason: str) -> None:
    if node is not None:
        (tmp_path / "ng0n1").symlink_to(node if node == "/dev/null" else __file__)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(UserError, match=reason):
        open_character_device(held(name, null), dev=tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before, "nothing stays open"
