"""The guard on real devices: other paths to the medium, and writers through other nodes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from loops import looped, mounted
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


def test_an_unused_drive_has_no_holder(drive: manage.VirtualDrive) -> None:
    assert reason(drive) is None


def test_mounted_through_another_loop_device(drive: manage.VirtualDrive, tmp_path: Path) -> None:
    with looped(drive.mount_point) as other:
        assert holders.twins(Path(drive.device).name, Host()) == [Path(other).name]
        assert reason(drive) is None
        with mounted(other, tmp_path / "mount") as mount:
            assert reason(drive) == f"{Path(other).name} is mounted on {mount}"


def test_held_exclusively_through_another_loop_device(drive: manage.VirtualDrive) -> None:
    with looped(drive.mount_point) as other:
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


APPROVE = (
    "import sys; from drivelab.plan.drive_sheet import SheetRow; from drivelab.drives import guard; "
    "guard.actual_serial = lambda device, name: 'TEST-1'; "
    "print(guard.approve(SheetRow('test', sys.argv[1], 'TEST-1', True, '', 'drives.tsv line 2'), sys.argv[1]).name)"
)
"""The serial number is set, because a virtual drive has none where its server is not visible; a real drive has one."""
WITHOUT_PTRACE = "setpriv --bounding-set=-sys_ptrace --inh-caps=-sys_ptrace"
HIDDEN = "mount -t proc -o hidepid=invisible proc /proc;"
"""An instance of its own: `remount` would change /proc of the whole host."""
BLIND = {
    "own PID namespace": ("unshare --pid --fork --mount-proc", "", "--pid=host"),
    "own PID namespace, /proc of the host": ("unshare --pid --fork", "", "for writing"),
    "own user namespace": ("unshare --user --map-root-user", "", "sudo podman"),
    "without the capability": (WITHOUT_PTRACE, "", "--cap-add=SYS_PTRACE"),
    "hidden, without the capability": ("unshare --mount", f"{HIDDEN} exec {WITHOUT_PTRACE}", "--cap-add=SYS_PTRACE"),
    "hidden": ("unshare --mount", HIDDEN, "for writing"),
}
"""By situation: program that makes it, shell command inside it, and part of the refusal."""


def inside(situation: str, code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python code in a situation in which it may not see a process outside."""
    around, before, _ = BLIND[situation]
    command = [*around.split(), "sh", "-c", f'{before} "$0" -c "$@"', sys.executable, code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("situation", BLIND)
def test_a_writer_outside_is_never_overlooked(drive: manage.VirtualDrive, situation: str) -> None:
    """A process of the host has the drive open for writing; the guard sees it, or says why it may not."""
    with writer(Path(drive.device)):
        done = inside(situation, APPROVE, drive.device)
    assert done.returncode != 0
    assert BLIND[situation][2] in done.stderr.splitlines()[-1]
    assert "Nothing was written" in done.stderr
    assert manage.counters(drive.name)["host_write_bytes"] == 0


def test_virtual_drives_need_the_guard(drive: manage.VirtualDrive) -> None:
    """Where the guard would refuse them, they run on the virtual clock."""
    code = "from drivelab.virtual import manage; print(manage.possible())"
    assert "--pid=host" in inside("own PID namespace", code).stdout
