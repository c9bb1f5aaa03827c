"""The guard on real devices: other paths to the medium, and writers through other nodes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from writers import leaderless_writer, mapping, own_table_writer, writer

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.drives import guard, holders
from drivelab.drives.openers import Host
from drivelab.plan.drive_sheet import SheetRow
from drivelab.virtual import manage
from drivelab.virtual.model import DriveModel

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


def test_an_unused_drive_has_no_holder(drive: manage.VirtualDrive) -> None:
    assert reason(drive) is None


def test_mounted_through_another_loop_device(drive: manage.VirtualDrive, tmp_path: Path) -> None:
    with second_loop(drive) as other:
        assert holders.twins(Path(drive.device).name, Host()) == [Path(other).name]
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


WAYS = {"open": writer, "mapped": mapping, "in a thread that outlived the first": leaderless_writer,
        "in a thread with its own file table": own_table_writer}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("unlink", [False, True])
def test_a_writer_with_its_own_node(drive: manage.VirtualDrive, tmp_path: Path, way: str, unlink: bool) -> None:
    node = tmp_path / "node"
    os.mknod(node, 0o600 | 0o060000, Path(drive.device).stat().st_rdev)
    with WAYS[way](node):
        if unlink:
            node.unlink()
        assert "for writing" in str(reason(drive))
    assert reason(drive) is None


def test_a_node_of_another_drive_under_the_right_name(
    drive: manage.VirtualDrive, model: DriveModel, tmp_path: Path
) -> None:
    """For a stale node in /dev, as in containers, the guard checks the device that it opens."""
    other = manage.start("other", replace(model, serial="TEST-2"))
    row = SheetRow("test", "virtual:test", drive.serial, True, "", "drives.tsv line 2")
    code = (
        "import sys; from drivelab.plan.drive_sheet import SheetRow; from drivelab.drives import guard; "
        f"guard.approve({row!r}, sys.argv[1])"
    )
    for covered, reason in ((drive.device, "has serial TEST-2"), (str(tmp_path), "")):
        command = 'mount --bind "$0" "$1"; exec "$2" -c "$3" "$4"'
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", command, other.device, covered, sys.executable, code, drive.device],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert reason in done.stderr
        assert (done.returncode != 0) == bool(reason)


def test_a_drive_swapped_while_the_guard_waits_is_refused(
    drive: manage.VirtualDrive, model: DriveModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another drive gets the device's name before the guard holds the first drive."""
    row = SheetRow("test", "virtual:test", drive.serial, True, "", "drives.tsv line 2")
    original, calls = guard.lasting_holder, list[str]()

    def swap(device: str, name: str, **options: bool) -> str | None:
        reason = original(device, name, **options)
        if not calls:
            manage.stop(drive.name, force=True)
            manage.start("other", replace(model, serial="TEST-2"))
        calls.append(name)
        return reason

    monkeypatch.setattr(guard, "lasting_holder", swap)
    with pytest.raises(UserError, match="Nothing was written"), guard.held(row, drive.device):
        pass
    assert manage.counters("other")["host_write_bytes"] == 0


def test_a_reader_that_locks_the_drive_is_waited_for(
    drive: manage.VirtualDrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """udev holds a shared lock while it reads a drive that the stage before has closed."""
    row = SheetRow("test", "virtual:test", drive.serial, True, "", "drives.tsv line 2")
    reader = os.open(drive.device, os.O_RDONLY)
    try:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with monkeypatch.context() as patch:
            patch.setattr(lock, "PASSING_S", 0.0)
            with pytest.raises(UserError, match="is being used by another"), guard.held(row, drive.device):
                pass
        ends = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: fcntl.flock(reader, fcntl.LOCK_UN))
        monkeypatch.setattr(lock, "time", ends)
        with guard.held(row, drive.device):
            pass
    finally:
        os.close(reader)


def test_a_held_drive_keeps_its_number(drive: manage.VirtualDrive, tmp_path: Path) -> None:
    """While a drive is held, its loop device cannot get another file, and its path does not depend on /dev."""
    row = SheetRow("test", "virtual:test", drive.serial, True, "", "drives.tsv line 2")
    image = tmp_path / "image"
    image.write_bytes(bytes(1 << 20))
    with guard.held(row, drive.device) as (held, _):
        subprocess.run(["losetup", "--detach", drive.device], check=True)
        attach = subprocess.run(["losetup", drive.device, str(image)], capture_output=True, text=True, check=False)
        assert attach.returncode != 0
        assert Path(held.path).stat().st_rdev == Path(drive.device).stat().st_rdev


def test_a_stopped_server_does_not_block_the_guard(drive: manage.VirtualDrive, model: DriveModel) -> None:
    """Another process has a file open on a FUSE file system whose server does not answer."""
    other = manage.start("other", replace(model, serial="TEST-2"))
    with writer(Path(other.mount_point)):
        os.kill(other.pid, signal.SIGSTOP)
        try:
            assert reason(drive) is None
        finally:
            os.kill(other.pid, signal.SIGCONT)


def test_a_writer_with_the_usual_node(drive: manage.VirtualDrive) -> None:
    with writer(Path(drive.device)):
        assert f"has {drive.device} open for writing" in str(reason(drive))


@pytest.mark.parametrize("command", [["mke2fs", "-q", "-O", "journal_dev"], ["mkswap"]])
def test_signatures_on_the_drive(drive: manage.VirtualDrive, command: list[str]) -> None:
    subprocess.run([*command, drive.device], check=True, capture_output=True)
    expected = "the journal of a file system on another drive" if command[0] == "mke2fs" else "None"
    assert expected in str(reason(drive))
