"""A btrfs on one device belongs to no other drive; one on several, or a seed of others, does."""

from __future__ import annotations

import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from drivelab.drives.signatures import Signature, is_alone


def superblock(*, devices: int = 1, flags: int = 0, magic: bytes = b"_BHRfS_M") -> bytes:
    block = bytearray(4096)
    struct.pack_into("<Q8s", block, 0x38, flags, magic)
    struct.pack_into("<Q", block, 0x88, devices)
    return bytes(block)


def test_only_one_device_without_sprouts_is_alone() -> None:
    assert is_alone(superblock())
    assert is_alone(superblock(flags=1))  # BTRFS_HEADER_FLAG_WRITTEN
    assert not is_alone(superblock(devices=2))
    assert not is_alone(superblock(flags=1 << 32)), "a seed device may carry other file systems"
    assert not is_alone(superblock(magic=b"!BHRfS_M")), "mkfs did not finish"


def test_it_is_a_member_unless_it_is_alone() -> None:
    assert Signature("sdz", "btrfs", "").membership == "a member of a btrfs"
    assert Signature("sdz", "btrfs", "", alone=True).membership is None


@pytest.mark.skipif(shutil.which("mkfs.btrfs", path="/usr/sbin:/sbin:/usr/bin") is None, reason="no mkfs.btrfs")
@pytest.mark.parametrize("devices", [1, 2])
def test_superblocks_by_mkfs_btrfs(devices: int, tmp_path: Path) -> None:
    files = [tmp_path / f"disk{number}" for number in range(devices)]
    for file in files:
        with file.open("wb") as made:
            made.truncate(256 << 20)
    program = shutil.which("mkfs.btrfs", path="/usr/sbin:/sbin:/usr/bin")
    subprocess.run([str(program), "-q", "-f", *map(str, files)], check=True)
    for file in files:
        with file.open("rb") as made:
            made.seek(64 << 10)
            assert is_alone(made.read(4096)) == (devices == 1)
