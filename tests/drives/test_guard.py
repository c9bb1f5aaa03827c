"""The guard on real devices: other paths to the medium, and writers that go by other names."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from drivelab.drives import guard, holders
from drivelab.virtual import manage

pytestmark = pytest.mark.device


def reason(drive: manage.VirtualDrive) -> str | None:
    return guard.holder(drive.device, Path(drive.device).name)


@contextmanager
def second_loop(drive: manage.VirtualDrive) -> Iterator[str]:
    command = ["losetup", "--find", "--show", drive.mount_point]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


@contextmanager
def writer(node: Path, *, unlink: bool = False) -> Iterator[None]:
    """Another process that has a device open for writing."""
    code = "import os, sys; os.open(sys.argv[1], os.O_RDWR); print(flush=True); sys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code, str(node)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdout.readline()
        if unlink:
            node.unlink()
        yield
    finally:
        process.stdin.close()
        process.wait()


def test_a_drive_that_nothing_uses(drive: manage.VirtualDrive) -> None:
    assert reason(drive) is None


def test_mounted_through_another_loop_device(drive: manage.VirtualDrive, tmp_path: Path) -> None:
    with second_loop(drive) as other:
        assert holders.twins(Path(drive.device).name, holders.Host()) == [Path(other).name]
        assert reason(drive) is None
        subprocess.run(["mkfs.ext4", "-q", other], check=True)
        mount = tmp_path / "mount"
        mount.mkdir()
        subprocess.run(["mount", other, str(mount)], check=True)
        try:
            assert reason(drive) == f"{Path(other).name} is mounted on {mount}"
        finally:
            subprocess.run(["umount", str(mount)], check=True)


def test_held_exclusively_through_another_loop_device(drive: manage.VirtualDrive) -> None:
    with second_loop(drive) as other:
        descriptor = os.open(other, os.O_RDONLY | os.O_EXCL)
        try:
            assert "is the same drive" in str(reason(drive))
        finally:
            os.close(descriptor)


@pytest.mark.parametrize("unlink", [False, True])
def test_a_writer_with_a_node_of_its_own(drive: manage.VirtualDrive, tmp_path: Path, unlink: bool) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o600 | 0o060000, Path(drive.device).stat().st_rdev)
    with writer(node, unlink=unlink):
        assert "open for writing" in str(reason(drive))
    assert reason(drive) is None


def test_a_writer_by_the_usual_name(drive: manage.VirtualDrive) -> None:
    with writer(Path(drive.device)):
        assert f"has {drive.device} open for writing" in str(reason(drive))


@pytest.mark.parametrize("command", [["mke2fs", "-q", "-O", "journal_dev"], ["mkswap"]])
def test_what_is_written_on_it(drive: manage.VirtualDrive, command: list[str]) -> None:
    subprocess.run([*command, drive.device], check=True, capture_output=True)
    wanted = "the journal of a file system on another drive" if command[0] == "mke2fs" else "None"
    assert wanted in str(reason(drive))
