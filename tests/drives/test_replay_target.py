"""A replay may write to the user's own loop devices and files, and to nothing that is in use."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from loops import looped, mounted
from writers import mapping, writer

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.core.lock import exclusive
from drivelab.drives import target
from drivelab.virtual import manage

pytestmark = pytest.mark.device


@pytest.fixture
def file(tmp_path: Path, backing_files_known: None) -> Path:
    path = tmp_path / "target.img"
    path.write_bytes(bytes(4 << 20))
    return path


@pytest.fixture
def loop(file: Path) -> Iterator[str]:
    with looped(file) as device:
        yield device


def refused(path: str | Path, *, destroy: bool = True) -> str:
    with pytest.raises(UserError) as error, target.named(Path(path), destroy=destroy):
        pass
    return str(error.value)


def test_a_file_is_approved_by_its_inode(file: Path) -> None:
    about = file.stat()
    with target.named(file, destroy=True) as opened:
        assert (opened.kind, opened.capacity_bytes, opened.device) == ("file", 4 << 20, None)
        assert opened.identity == f"file {about.st_dev}:{about.st_ino}"


@pytest.mark.usefixtures("impatient")
def test_a_loop_device_is_approved_by_numbers_and_sequence(loop: str) -> None:
    with target.named(Path(loop), destroy=True) as opened:
        assert (opened.kind, opened.path, opened.capacity_bytes) == ("loop device", loop, 4 << 20)
        kind, numbers, sequence = opened.identity.split()
        number = Path(loop).stat().st_rdev
        assert (kind, numbers) == ("block", f"{os.major(number)}:{os.minor(number)}")
        assert sequence == Path(f"/sys/class/block/{Path(loop).name}/diskseq").read_text().strip()
        assert "another drivelab process" in refused(loop) or "exclusively" in refused(loop)


def test_a_target_needs_confirmation(file: Path) -> None:
    assert "confirm with --yes" in refused(file, destroy=False)


def test_a_file_under_a_loop_device(file: Path, loop: str) -> None:
    assert f"{Path(loop).name} is a loop device over it" in refused(file)


def test_a_file_that_another_process_writes(file: Path) -> None:
    with writer(file):
        assert f"has {file} open for writing" in refused(file)


def test_the_image_of_a_loop_device_that_another_process_writes(file: Path, loop: str) -> None:
    with writer(file):
        assert f"has {file} open for writing" in refused(loop)
    with mapping(file):
        assert f"has {file} mapped for writing" in refused(loop)


@contextmanager
def mounted_by_another(device: str, folder: Path, *, namespace: bool) -> Iterator[None]:
    """Let a process mount a device, in its own mount namespace or in the test's."""
    subprocess.run(["mkfs.ext4", "-q", device], check=True)
    folder.mkdir()
    command = ["sh", "-c", 'mount "$0" "$1" && echo && read -r _; umount "$1"', device, str(folder)]
    around = ["unshare", "--mount"] if namespace else []
    with subprocess.Popen([*around, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield
        finally:
            process.communicate(b"\n")


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("namespace", [False, True])
@pytest.mark.parametrize("way", ["path", "hard link", "deleted", "second loop device", "node of another name"])
def test_a_mounted_image_is_refused_through_any_path(
    file: Path, loop: str, tmp_path: Path, way: str, namespace: bool
) -> None:
    link, node = tmp_path / "link.img", tmp_path / "loop0"
    link.hardlink_to(file)
    os.mknod(node, 0o600 | 0o060000, Path(loop).stat().st_rdev)
    with ExitStack() as stack:
        second = stack.enter_context(looped(link)) if way == "second loop device" else ""
        if way == "deleted":
            file.unlink()
        targets = {"path": file, "hard link": link, "deleted": link, "second loop device": second}
        with mounted_by_another(loop, tmp_path / "mount", namespace=namespace):
            before = link.read_bytes()
            message = refused(targets.get(way, node))
            assert "may not be used" in message or "belongs to" in message
            assert link.read_bytes() == before


def test_a_locked_file_is_refused_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only drivelab locks files, and a user should not wait for the message."""
    with exclusive(file, "other"):
        monkeypatch.setattr(lock, "time", SimpleNamespace(monotonic=time.monotonic))
        assert "another drivelab process" in refused(file)


def test_a_reader_that_locks_the_loop_device_is_waited_for(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """udev holds a shared lock while it reads a device that a writer has closed."""
    reader = os.open(loop, os.O_RDONLY)
    try:
        fcntl.flock(reader, fcntl.LOCK_SH)
        with monkeypatch.context() as patch:
            patch.setattr(lock, "PASSING_S", 0.0)
            assert "another drivelab process" in refused(loop)
        ends = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: fcntl.flock(reader, fcntl.LOCK_UN))
        monkeypatch.setattr(lock, "time", ends)
        with target.named(Path(loop), destroy=True) as opened:
            assert opened.path == loop
    finally:
        os.close(reader)


def test_other_paths_are_refused(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "missing")
    assert "neither a block device nor a regular file" in refused(tmp_path)
    (tmp_path / "empty").touch()
    assert "is empty" in refused(tmp_path / "empty")


def test_a_file_of_another_user(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(file, 12345, -1)
    assert "belongs to another user" in refused(file)


def test_a_loop_device_over_a_file_of_another_user(file: Path, loop: str) -> None:
    os.chown(file, 12345, -1)
    assert "belongs to another user" in refused(loop)


@pytest.mark.usefixtures("impatient")
def test_a_loop_device_over_a_device(loop: str) -> None:
    with looped(loop) as upper:
        assert "is not a regular file" in refused(upper)
        assert "is a loop device over it" in refused(loop)


def test_a_file_that_another_process_has_mapped(file: Path) -> None:
    with mapping(file):
        assert f"has {file} mapped for writing" in refused(file)


@pytest.mark.usefixtures("impatient")
def test_a_mounted_loop_device(loop: str, tmp_path: Path) -> None:
    with mounted(loop, tmp_path / "mount"):
        assert "is mounted on" in refused(loop)


def test_a_virtual_drive_is_named_by_its_row(drive: manage.VirtualDrive) -> None:
    assert "is virtual drive 'test'; use its name" in refused(drive.device)


def test_a_real_drive_is_named_by_its_row() -> None:
    disks = [path.name for path in Path("/sys/block").iterdir() if not path.name.startswith(("loop", "ram", "zram"))]
    disks = [name for name in disks if Path("/dev", name).is_block_device()]
    if not disks:
        pytest.skip("this machine has no disk")
    message = refused(f"/dev/{disks[0]}")
    reasons = ("not a loop device", "Operation not permitted", "Permission denied")
    assert any(reason in message for reason in reasons)
    assert "Nothing was written" in message


def apart(path: str | Path) -> subprocess.CompletedProcess[str]:
    """Open a target in a PID namespace of its own, and print its kind."""
    code = (
        "import sys; from pathlib import Path; from drivelab.drives import target\n"
        "with target.named(Path(sys.argv[1]), destroy=True) as opened: print(opened.kind)"
    )
    namespace = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*namespace, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no permission to make a PID namespace")
    command = [*namespace, sys.executable, "-c", code, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_user_of_a_file_is_found_from_another_pid_namespace(file: Path) -> None:
    """The kernel counts who has a file open for writing, so a check need not see all processes."""
    assert apart(file).stdout == "file\n"
    with writer(file):
        assert "something has it open for writing. Release it first" in apart(file).stderr


def test_a_loop_device_needs_sight_of_all_processes(loop: str) -> None:
    done = apart(loop)
    assert "PID namespace of its own" in done.stderr
    assert done.stdout == ""
