"""The real-time virtual drive as the kernel sees it: data, faults, and leftovers after every kind of death."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace

import pytest
from direct_io import PAGE, borrow_and_die, borrow_often, kill_server, read, write
from loops import image, looped, mounted
from waits import DRIVELAB, GENEROUS_S, wait_until

from drivelab.core import lock
from drivelab.core.errors import UserError
from drivelab.core.programs import process_state
from drivelab.drives import identity
from drivelab.virtual import fuse, manage
from drivelab.virtual.faults import Fault
from drivelab.virtual.manage import VirtualDrive
from drivelab.virtual.model import DriveModel

pytestmark = pytest.mark.device


def error_of(device: str, offset: int) -> int | None:
    try:
        read(device, offset, PAGE)
    except OSError as error:
        return error.errno
    return None


def leftovers(run_directory: Path) -> list[str]:
    """Return mounts and loop devices of this test, and files other than locks."""
    mounted = [str(path) for path, _ in fuse.mounts() if path.parent == run_directory]
    files = [path.name for path in run_directory.glob("*") if path.suffix != ".lock"]
    loops = [
        backing.read_text()
        for backing in Path("/sys/block").glob("loop*/loop/backing_file")
        if str(run_directory) in backing.read_text()
    ]
    return mounted + files + loops


@pytest.mark.parametrize("block_bytes", [512, PAGE])
def test_device_matches_the_model(run_directory: Path, model: DriveModel, block_bytes: int) -> None:
    drive = manage.start("test", replace(model, logical_block_bytes=block_bytes))
    queue = Path("/sys/block", Path(drive.device).name, "queue")
    assert int(Path("/sys/block", Path(drive.device).name, "size").read_text()) * 512 == model.capacity_bytes
    assert int((queue / "logical_block_size").read_text()) == block_bytes
    assert int((queue / "discard_granularity").read_text()) == PAGE
    assert (queue.parent / "loop/dio").read_text().strip() == "1"
    assert drive.serial == model.serial


def test_reads_back_what_was_written(drive: VirtualDrive) -> None:
    first, second = os.urandom(PAGE), os.urandom(1 << 20)
    write(drive.device, 5 * PAGE, first)
    write(drive.device, 8 << 20, second)
    assert read(drive.device, 5 * PAGE, PAGE) == first
    assert read(drive.device, 8 << 20, len(second)) == second
    assert read(drive.device, 4 * PAGE, PAGE) == bytes(PAGE)


def test_fio_verifies_at_high_depth(drive: VirtualDrive, tmp_path: Path) -> None:
    command = ["fio", "--name=verify", f"--filename={drive.device}", "--direct=1", "--ioengine=libaio",
               "--rw=randwrite", "--bsrange=4k-128k", "--iodepth=32", "--verify=crc32c"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_trimmed_pages_read_as_zeros_and_are_unmapped(drive: VirtualDrive) -> None:
    write(drive.device, 0, b"x" * 8 * PAGE)
    subprocess.run(["blkdiscard", "-o", str(2 * PAGE), "-l", str(3 * PAGE), drive.device], check=True)
    assert read(drive.device, 0, 8 * PAGE) == b"x" * 2 * PAGE + bytes(3 * PAGE) + b"x" * 3 * PAGE
    assert manage.counters("test")["mapped_pages"] == 5


def test_purge_is_seen_through_the_page_cache(drive: VirtualDrive) -> None:
    Path(drive.device).write_bytes(b"x" * PAGE)
    assert Path(drive.device).read_bytes()[:PAGE] == b"x" * PAGE
    manage.purge("test")
    assert Path(drive.device).read_bytes()[:PAGE] == bytes(PAGE)


def test_reset_makes_a_new_drive(drive: VirtualDrive) -> None:
    write(drive.device, 0, b"x" * PAGE)
    manage.set_fault("test", Fault("error"))
    manage.purge("test", counters_too=True)
    assert read(drive.device, 0, PAGE) == bytes(PAGE)
    assert manage.counters("test")["host_write_bytes"] == 0


def test_counters_count_only_host_io(drive: VirtualDrive) -> None:
    assert not any(manage.counters("test").values())  # starting does no I/O
    write(drive.device, 0, b"x" * 3 * PAGE)
    read(drive.device, 0, PAGE)
    counters = manage.counters("test")
    assert (counters["host_write_bytes"], counters["host_read_bytes"]) == (3 * PAGE, PAGE)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENODATA])
def test_error_hits_only_its_addresses(drive: VirtualDrive, number: int) -> None:
    manage.set_fault("test", Fault("error", "read", 8 * PAGE, PAGE, number))
    assert [error_of(drive.device, page * PAGE) for page in (7, 8, 9)] == [None, number, None]
    write(drive.device, 8 * PAGE, b"x" * PAGE)
    assert manage.clear_faults("test") == 0
    assert read(drive.device, 8 * PAGE, PAGE) == b"x" * PAGE


def test_delay_adds_to_the_model(run_directory: Path, model: DriveModel) -> None:
    drive = manage.start("test", replace(model, enabled=False))
    manage.set_fault("test", Fault("delay", "read", delay_us=50_000))
    # Only a lower bound: on a busy machine the drive may answer later, but never earlier.
    assert elapsed_s(drive.device) >= 0.05
    manage.clear_faults("test")
    assert min(elapsed_s(drive.device) for _ in range(20)) < 0.05


def elapsed_s(device: str) -> float:
    started = time.perf_counter()
    read(device, 0, PAGE)
    return time.perf_counter() - started


def test_a_drive_that_is_gone_fails_all_io(drive: VirtualDrive) -> None:
    manage.set_fault("test", Fault("gone"))
    assert error_of(drive.device, 0) is not None
    with pytest.raises(OSError, match=r"No such device|Input/output|No such"):
        write(drive.device, 0, bytes(PAGE))


@pytest.mark.parametrize("operation", ["read", "flush"])
def test_a_hang_ends_when_it_is_cleared(drive: VirtualDrive, operation: str) -> None:
    manage.set_fault("test", Fault("hang", operation))
    script = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 1, 0); os.pwrite(fd, b'x', 0); os.fsync(fd)"
    )
    with subprocess.Popen([sys.executable, "-c", script, drive.device]) as process:
        wait_until(lambda: os.getxattr(drive.mount_point, "user.drivelab.held") != b"0")
        assert process.poll() is None
        assert manage.clear_faults("test") > 0
        assert process.wait(GENEROUS_S) == 0


def start_hanging_fio(drive: VirtualDrive, directory: Path) -> subprocess.Popen[bytes]:
    """Start fio on a drive that does not answer; return when its first I/O is in flight."""
    manage.set_fault(drive.name, Fault("hang"))
    command = ["fio", "--name=hang", f"--filename={drive.device}", "--direct=1", "--ioengine=libaio",
               "--rw=randread", "--bs=4k", "--iodepth=8", "--time_based", "--runtime=600"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=directory, process_group=0, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    inflight = Path("/sys/block", Path(drive.device).name, "inflight")
    wait_until(lambda: inflight.read_text().split()[0] != "0")
    assert process.poll() is None
    return process


def test_stop_frees_a_hanging_fio(drive: VirtualDrive, run_directory: Path, tmp_path: Path) -> None:
    process = start_hanging_fio(drive, tmp_path)
    os.killpg(process.pid, signal.SIGKILL)
    manage.stop("test")
    process.wait(GENEROUS_S)
    assert leftovers(run_directory) == []


def test_stop_ends_a_server_stopped_by_a_signal(drive: VirtualDrive, run_directory: Path, tmp_path: Path) -> None:
    process = start_hanging_fio(drive, tmp_path)
    os.kill(drive.pid, signal.SIGSTOP)
    wait_until(lambda: process_state(drive.pid)[0] == "T")
    assert [status.counters for status in manage.status()] == [None]
    manage.stop("test")
    process.wait(GENEROUS_S)
    assert leftovers(run_directory) == []


def test_start_is_idempotent(drive: VirtualDrive, model: DriveModel) -> None:
    write(drive.device, 0, b"x" * PAGE)
    assert manage.start("test", model) == drive
    assert read(drive.device, 0, PAGE) == b"x" * PAGE


def test_start_refuses_another_model(drive: VirtualDrive, model: DriveModel) -> None:
    with pytest.raises(UserError, match=r"'test' is running with another model.*virtual stop test"):
        manage.start("test", replace(model, over_provisioning=0.5))
    assert drive.alive


def test_concurrent_starts_make_one_server(run_directory: Path, model: DriveModel) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        records = list(pool.map(manage.start, ["test"] * 4, [model] * 4))
    assert len(set(map(repr, records))) == 1
    assert len([path for path, _ in fuse.mounts() if path.parent == run_directory]) == 1


def test_the_last_borrower_stops_a_drive(run_directory: Path, model: DriveModel) -> None:
    with manage.borrowed("test", model) as first:
        with manage.borrowed("test", model) as second:
            assert first == second
        assert read(first.device, 0, PAGE) == bytes(PAGE), "the other user still has the drive"
        with pytest.raises(UserError, match="is in use by another command"):
            manage.stop("test")
    assert manage.status() == []
    assert leftovers(run_directory) == []


def test_a_borrower_leaves_a_drive_that_others_started(drive: VirtualDrive, model: DriveModel) -> None:
    with manage.borrowed("test", model) as borrowed:
        assert borrowed == drive
    assert drive.alive
    manage.stop("test")
    with manage.borrowed("test", model), pytest.raises(UserError, match="with another model"):
        manage.start("test", replace(model, over_provisioning=0.5))
    assert manage.status() == []
    with manage.borrowed("test", model):
        manage.start("test", model)
    assert [status.alive for status in manage.status()] == [True], "a start asks for a drive that stays"


def test_commands_that_borrow_a_drive_at_once_never_lose_it(run_directory: Path, model: DriveModel) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        assert list(pool.map(borrow_often, [model] * 4)) == [6] * 4
    assert manage.status() == []
    assert leftovers(run_directory) == []


def test_the_drive_of_a_killed_borrower_is_stopped_by_the_next(run_directory: Path, model: DriveModel) -> None:
    killed = get_context("spawn").Process(target=borrow_and_die, args=[model])
    killed.start()
    killed.join()
    assert killed.exitcode == -signal.SIGKILL
    assert [status.alive for status in manage.status()] == [True]
    with manage.borrowed("test", model):
        pass
    assert manage.status() == []


def test_udev_does_not_count_as_a_user(drive: VirtualDrive, monkeypatch: pytest.MonkeyPatch) -> None:
    """It locks a drive while it reads it, after a writer has closed it."""
    reader = os.open(drive.device, os.O_RDONLY)
    fcntl.flock(reader, fcntl.LOCK_SH)
    ends = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: os.close(reader))
    monkeypatch.setattr(lock, "time", ends)
    assert manage.stop("test")
    assert not drive.alive


def test_server_survives_its_starter(run_directory: Path, model: DriveModel, tmp_path: Path) -> None:
    (tmp_path / "drives.yaml").write_text(json.dumps({"test": model.to_mapping()}))
    command = [*DRIVELAB, "virtual", "start", "test", "--config", str(tmp_path / "drives.yaml")]
    starter = subprocess.Popen(command, process_group=0, stdout=subprocess.PIPE, text=True)
    output, _ = starter.communicate()
    with pytest.raises(ProcessLookupError):  # nothing of the starter's group is left
        os.killpg(starter.pid, signal.SIGKILL)
    (record,) = manage.status()
    assert record.alive
    assert output.split() == [record.device, "16MiB", "TEST-1"]
    assert os.getsid(record.pid) == record.pid


def test_killed_server_gives_errors_and_is_cleaned_up(
    drive: VirtualDrive, run_directory: Path, model: DriveModel
) -> None:
    kill_server(drive)
    assert error_of(drive.device, 0) is not None
    assert [(status.alive, status.counters) for status in manage.status()] == [(False, None)]
    assert manage.find_by_device(drive.device) is None
    with pytest.raises(UserError, match="has lost its server"):
        manage.purge("test")
    removed = manage.stop("test")
    assert any(drive.device in item for item in removed)
    assert leftovers(run_directory) == []
    again = manage.start("test", model)
    assert read(again.device, 0, PAGE) == bytes(PAGE)


def test_start_cleans_up_after_a_killed_server(drive: VirtualDrive, run_directory: Path, model: DriveModel) -> None:
    kill_server(drive)
    again = manage.start("test", model)
    assert again.pid != drive.pid
    assert len([path for path, _ in fuse.mounts() if path.parent == run_directory]) == 1


def test_a_killed_start_is_cleaned_up(drive: VirtualDrive, run_directory: Path) -> None:
    (run_directory / "test.json").unlink()  # the record is the last thing that a start writes
    descriptor = os.pidfd_open(drive.pid)
    manage.stop()
    assert leftovers(run_directory) == []
    select.select([descriptor], [], [])  # the server has ended by itself
    os.close(descriptor)


def test_record_of_another_version_is_cleaned_up(drive: VirtualDrive, run_directory: Path, model: DriveModel) -> None:
    (run_directory / "test.json").write_text('{"name": "test", "colour": "red"}')
    again = manage.start("test", model)
    assert again.pid != drive.pid
    assert len([path for path, _ in fuse.mounts() if path.parent == run_directory]) == 1


def test_server_ends_when_its_file_is_unmounted(drive: VirtualDrive) -> None:
    descriptor = os.pidfd_open(drive.pid)
    subprocess.run(["losetup", "--detach", drive.device], check=True)
    fuse.unmount(Path(drive.mount_point))
    select.select([descriptor], [], [])
    os.close(descriptor)


def test_a_reused_pid_is_never_killed(drive: VirtualDrive, run_directory: Path, model: DriveModel) -> None:
    kill_server(drive)
    with subprocess.Popen(["sleep", "600"]) as bystander:
        record = json.loads((run_directory / "test.json").read_text())
        (run_directory / "test.json").write_text(json.dumps({**record, "pid": bystander.pid}))
        manage.stop("test")
        assert bystander.poll() is None
        bystander.kill()


def test_loop_devices_have_one_read_ahead_and_scheduler(drive: VirtualDrive, tmp_path: Path) -> None:
    """The kernel chooses another read-ahead for a file on a disk than for a drive's file."""
    file = image(tmp_path / "image", 1)
    device = fuse.attach_loop(file)
    try:
        for name in (drive.device, device):
            assert Path(f"/sys/block/{Path(name).name}/queue/read_ahead_kb").read_text() == "128\n"
        Path(f"/sys/block/{Path(device).name}/queue/read_ahead_kb").write_text("512")
        Path(f"/sys/block/{Path(device).name}/queue/scheduler").write_text("mq-deadline")
    finally:
        fuse.detach_loop(device, file, GENEROUS_S)
    device = fuse.attach_loop(file)
    try:
        assert Path(f"/sys/block/{Path(device).name}/queue/read_ahead_kb").read_text() == "128\n", "not the last user's"
        assert "[none]" in Path(f"/sys/block/{Path(device).name}/queue/scheduler").read_text()
    finally:
        fuse.detach_loop(device, file, GENEROUS_S)


def test_foreign_loop_device_is_left_alone(drive: VirtualDrive, run_directory: Path, tmp_path: Path) -> None:
    file = image(tmp_path / "foreign.img", 1)
    with looped(file) as foreign:
        assert manage.find_by_device(foreign) is None
        kill_server(drive)
        subprocess.run(["losetup", "--detach", drive.device], check=True)
        record = json.loads((run_directory / "test.json").read_text())
        (run_directory / "test.json").write_text(json.dumps({**record, "device": foreign}))
        assert manage.find_by_device(foreign) is None
        manage.stop()
        assert fuse.loop_devices(file) == [foreign]


def test_find_by_device_follows_links(drive: VirtualDrive, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(drive.device)
    assert manage.find_by_device(str(link)) == drive
    assert manage.find_by_device("/dev/null") is None


def test_stop_refuses_a_mounted_drive(drive: VirtualDrive, run_directory: Path, tmp_path: Path) -> None:
    with (
        mounted(drive.device, tmp_path / "mounted") as point,
        pytest.raises(UserError, match=f"mounted on {point}; unmount it first"),
    ):
        manage.stop("test")
    assert drive.alive
    manage.stop("test")
    assert leftovers(run_directory) == []


def test_two_drives_at_once(run_directory: Path, model: DriveModel) -> None:
    with ThreadPoolExecutor(2) as pool:
        one, two = pool.map(manage.start, ["one", "two"], [model, replace(model, serial="TEST-2")])
    write(one.device, 0, b"1" * PAGE)
    write(two.device, 0, b"2" * PAGE)
    assert read(one.device, 0, PAGE) == b"1" * PAGE
    assert [status.name for status in manage.status()] == ["one", "two"]
    manage.stop("one")
    assert read(two.device, 0, PAGE) == b"2" * PAGE


@pytest.mark.parametrize("name", ["nothing", "../nothing", "Nothing", ""])
def test_unknown_name_is_refused(run_directory: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"not running|is not a valid name"):
        manage.counters(name)


def test_garbage_in_a_control_attribute_is_refused(drive: VirtualDrive) -> None:
    for attribute, value in (("faults", b"{"), ("faults", b'[{"no": 1}]'), ("nothing", b"1")):
        with pytest.raises(OSError, match=r"Invalid argument|not supported"):
            os.setxattr(drive.mount_point, f"user.drivelab.{attribute}", value)
    assert drive.alive


def test_a_path_of_a_real_drive_to_a_virtual_drive_is_recognised(
    drive: VirtualDrive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Also a drive whose record is in another run directory."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("DRIVELAB_RUN_DIR", str(tmp_path / "other"))
        facts = identity.describe(Path(drive.device).name)
    assert (facts["virtual"], facts["model"], facts["transport"]) == (True, "drivelab virtual drive", "virtual")
