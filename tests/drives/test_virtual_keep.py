"""A virtual drive in real time that is stopped with its state saved, and started from this state."""

from __future__ import annotations

import json
import mmap
import os
import select
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from direct_io import PAGE, kill_server, read, write
from waits import GENEROUS_S, wait_until

from drivelab.cli.main import main
from drivelab.core.errors import UserError
from drivelab.core.programs import process_state
from drivelab.virtual import fuse, kept_state, manage
from drivelab.virtual.faults import Fault
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.manage import VirtualDrive
from drivelab.virtual.model import DriveModel

pytestmark = pytest.mark.device

CAPACITY = 16 << 20

WRITER = """
import mmap, os, sys
device, first, pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
descriptor, buffer, turn = os.open(device, os.O_WRONLY | os.O_DIRECT), mmap.mmap(-1, 4096), 0
while True:
    turn += 1
    page = first + turn * 7919 % pages
    buffer[:] = turn.to_bytes(8, "little") * 512
    try:
        os.pwritev(descriptor, [buffer], page * 4096)
    except OSError:
        sys.exit(3)
    os.write(1, b"%d %d\\n" % (page, turn))
"""
"""Writes pages with the turn number until an I/O error, and logs each acknowledged page."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def quick(model: DriveModel) -> DriveModel:
    """A model without timing, but with the usual flash operations."""
    return replace(model, enabled=False, over_provisioning=0.12)


def overwrite(device: str, twin: FlashDrive, pages: int, seed: int) -> None:
    """Write random pages to the device and to a twin that is never stopped."""
    rng, descriptor = Random(seed), os.open(device, os.O_WRONLY | os.O_DIRECT)
    with closing(mmap.mmap(-1, PAGE)) as buffer:
        try:
            for _ in range(pages):
                offset = rng.randrange(CAPACITY // PAGE) * PAGE
                buffer[:] = rng.randbytes(8) * (PAGE // 8)
                os.pwritev(descriptor, [buffer], offset)
                twin.submit(0.0, "write", offset, PAGE)
        finally:
            os.close(descriptor)


def amplification(before: dict[str, int], after: dict[str, int]) -> float:
    host, nand = (after[key] - before[key] for key in ("host_write_bytes", "nand_write_bytes"))
    return nand / host


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_data_and_counters_survive(drive: VirtualDrive, model: DriveModel, folder: Path, run_directory: Path) -> None:
    write(drive.device, 0, os.urandom(1 << 20))
    write(drive.device, 9 << 20, os.urandom(2 << 20))
    subprocess.run(["blkdiscard", "-o", str(4 * PAGE), "-l", str(3 * PAGE), drive.device], check=True)
    content, counters = read(drive.device, 0, CAPACITY), manage.counters("test")
    manage.stop("test", keep=folder)
    assert names(folder) == ["test.flash"]
    assert (3 << 20) - 3 * PAGE < (folder / "test.flash").stat().st_size < (3 << 20) + (1 << 19)
    assert [path.name for path in run_directory.iterdir()] == ["test.lock"]
    assert not [path for path, _ in fuse.mounts() if path.parent == run_directory]
    again = manage.start("test", model, kept=folder)
    assert again.pid != drive.pid
    assert manage.counters("test") == counters
    assert read(again.device, 0, CAPACITY) == content
    assert names(folder) == []
    assert manage.counters("test")["host_read_bytes"] == counters["host_read_bytes"] + CAPACITY


def test_a_saved_drive_stays_past_its_cliff(run_directory: Path, quick: DriveModel, folder: Path) -> None:
    device, twin = manage.start("test", quick).device, FlashDrive(quick)
    overwrite(device, twin, 14_000, seed=1)
    worn = manage.counters("test")
    assert worn == twin.counters()
    manage.stop("test", keep=folder)
    device = manage.start("test", quick, kept=folder).device
    assert manage.counters("test") == worn
    overwrite(device, twin, 2000, seed=2)
    after = manage.counters("test")
    assert after == twin.counters()
    assert amplification(worn, after) > 3


@pytest.mark.parametrize("slow", [True, False], ids=["as the model says", "at full speed"])
def test_every_acknowledged_write_is_saved(run_directory: Path, model: DriveModel, folder: Path, slow: bool) -> None:
    timed = replace(model, enabled=slow)
    device, share = manage.start("test", timed).device, CAPACITY // PAGE // 4
    command = [sys.executable, "-c", WRITER, device]
    logs = [folder.parent / f"log{i}" for i in range(4)]
    writers = []
    for i, log in enumerate(logs):
        with log.open("wb") as output:
            writers.append(subprocess.Popen([*command, str(i * share), str(share)], stdout=output))
    try:
        wait_until(lambda: all(log.stat().st_size > 4000 for log in logs))
        assert [writer.poll() for writer in writers] == [None] * 4
        manage.stop("test", force=True, keep=folder)
        assert [writer.wait(GENEROUS_S) for writer in writers] == [3] * 4
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    content = read(manage.start("test", timed, kept=folder).device, 0, CAPACITY)
    for i, log in enumerate(logs):
        fields = [line.split() for line in log.read_text().splitlines()]
        last = {int(page): int(turn) for page, turn in fields}
        turn = max(last.values())
        assert len(last) > 100
        for page in range(i * share, (i + 1) * share):
            data = content[page * PAGE : (page + 1) * PAGE]
            number = int.from_bytes(data[:8], "little")
            assert data == data[:8] * 512, f"page {page} is torn"
            in_flight = number == turn + 1 and i * share + number * 7919 % share == page
            assert number == last.get(page, 0) or in_flight, f"page {page} holds turn {number}, not {last.get(page)}"
    assert manage.counters("test")["host_write_bytes"] % PAGE == 0


@pytest.mark.usefixtures("impatient")
def test_a_drive_in_use_is_refused_without_force(drive: VirtualDrive, folder: Path, tmp_path: Path) -> None:
    command = ["flock", "--no-fork", drive.device,  # as a stage does
               "fio", "--name=load", f"--filename={drive.device}", "--direct=1", "--ioengine=libaio",
               "--rw=randwrite", "--bs=4k", "--iodepth=16", "--time_based", "--runtime=600"]  # fmt: skip
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: manage.counters("test")["host_write_bytes"] > 100 * PAGE)
            with pytest.raises(UserError, match="is in use by another command"):
                manage.stop("test", keep=folder)
            assert drive.alive
            assert names(folder) == []
            manage.stop("test", force=True, keep=folder)
            assert process.wait(GENEROUS_S) != 0
        finally:
            process.kill()
    assert names(folder) == ["test.flash"]


def test_a_damaged_file_is_ignored_and_removed(drive: VirtualDrive, model: DriveModel, folder: Path) -> None:
    write(drive.device, 0, b"x" * 100 * PAGE)
    manage.stop("test", keep=folder)
    file = folder / "test.flash"
    whole = file.read_bytes()
    file.write_bytes(whole[:-9000] + bytes([whole[-9000] ^ 4]) + whole[-8999:])
    again = manage.start("test", model, kept=folder)
    assert not any(manage.counters("test").values())
    assert read(again.device, 0, PAGE) == bytes(PAGE)
    assert names(folder) == []


def test_a_partial_file_is_never_loaded(drive: VirtualDrive, model: DriveModel, folder: Path) -> None:
    write(drive.device, 0, b"x" * PAGE)
    manage.stop("test", keep=folder)
    (folder / "test.flash").rename(folder / "test.flash.part")  # as after a server was killed before the rename
    manage.start("test", model, kept=folder)
    assert not any(manage.counters("test").values())
    assert names(folder) == []


def make_old(folder: Path) -> None:
    """Make an old saved state, and a partial one."""
    folder.mkdir()
    (folder / "test.flash").write_bytes(b"old")
    (folder / "test.flash.part").write_bytes(b"old")


def test_a_dead_server_saves_nothing(drive: VirtualDrive, folder: Path) -> None:
    make_old(folder)
    kill_server(drive)
    assert any(drive.device in item for item in manage.stop("test", keep=folder))
    assert names(folder) == []


def test_a_stopped_server_saves_nothing(drive: VirtualDrive, folder: Path) -> None:
    make_old(folder)
    os.kill(drive.pid, signal.SIGSTOP)
    wait_until(lambda: process_state(drive.pid)[0] == "T")
    manage.stop("test", keep=folder)
    assert not drive.alive
    assert names(folder) == []


@pytest.mark.parametrize("operation", ["read", "flush"])
def test_a_hanging_drive_saves_nothing(drive: VirtualDrive, folder: Path, operation: str) -> None:
    make_old(folder)
    manage.set_fault("test", Fault("hang", operation))
    script = (
        "import os, sys; fd = os.open(sys.argv[1], os.O_RDWR); os.pread(fd, 1, 0); os.pwrite(fd, b'x', 0); os.fsync(fd)"
    )
    with subprocess.Popen([sys.executable, "-c", script, drive.device], stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: os.getxattr(drive.mount_point, "user.drivelab.held") != b"0")
        manage.stop("test", keep=folder)
        assert process.wait(GENEROUS_S) != 0
    assert names(folder) == []


def test_a_server_killed_while_saving_leaves_nothing(
    drive: VirtualDrive, model: DriveModel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    os.mkfifo(folder / "test.flash.part")  # no process reads the pipe, so the server blocks while it saves
    monkeypatch.setattr(kept_state, "discard", lambda _: None)
    monkeypatch.setattr(kept_state, "_WRITE_TIMEOUT_S", 0.2)
    manage.stop("test", keep=folder)
    assert not drive.alive
    assert names(folder) == []
    manage.start("test", model, kept=folder)
    assert not any(manage.counters("test").values())


def test_faults_are_not_saved(drive: VirtualDrive, model: DriveModel, folder: Path) -> None:
    write(drive.device, 0, b"x" * PAGE)
    manage.set_fault("test", Fault("error"))
    manage.stop("test", keep=folder)
    again = manage.start("test", model, kept=folder)
    assert read(again.device, 0, PAGE) == b"x" * PAGE
    assert os.getxattr(again.mount_point, "user.drivelab.faults") == b"[]"


def test_start_keeps_a_running_drive_and_removes_its_old_state(
    drive: VirtualDrive, model: DriveModel, folder: Path
) -> None:
    make_old(folder)
    write(drive.device, 0, b"x" * PAGE)
    assert manage.start("test", model, kept=folder) == drive
    assert read(drive.device, 0, PAGE) == b"x" * PAGE
    assert names(folder) == []


def test_stopping_twice_does_not_lose_the_state(drive: VirtualDrive, model: DriveModel, folder: Path) -> None:
    write(drive.device, 0, b"x" * PAGE)
    manage.stop("test", keep=folder)
    assert manage.stop("test", keep=folder) == []
    assert read(manage.start("test", model, kept=folder).device, 0, PAGE) == b"x" * PAGE


def test_a_stop_killed_after_the_server_saved_the_drive(drive: VirtualDrive, model: DriveModel, folder: Path) -> None:
    write(drive.device, 0, b"x" * PAGE)
    folder.mkdir()
    descriptor = os.pidfd_open(drive.pid)
    with pytest.raises(OSError, match=r"abort|not connected|No such device"):
        os.setxattr(drive.mount_point, "user.drivelab.keep", bytes(folder / "test.flash"))
    select.select([descriptor], [], [])  # the server has ended by itself and cannot answer
    os.close(descriptor)
    again = manage.start("test", model, kept=folder)
    assert read(again.device, 0, PAGE) == b"x" * PAGE
    assert manage.counters("test")["host_write_bytes"] == PAGE


@pytest.mark.parametrize("obstacle", ["folder", "server"])
def test_a_drive_that_cannot_be_saved_keeps_running(drive: VirtualDrive, folder: Path, obstacle: str) -> None:
    write(drive.device, 0, b"x" * PAGE)
    if obstacle == "folder":
        folder.write_text("a file")
    else:
        (folder / "test.flash.part" / "x").mkdir(parents=True)
    with pytest.raises(UserError, match=r"'test' was not stopped: its state cannot be saved in .*; choose another"):
        manage.stop("test", keep=folder)
    assert read(drive.device, 0, PAGE) == b"x" * PAGE
    manage.stop("test", keep=folder, force=True)
    assert not drive.alive


def test_commands(run_directory: Path, model: DriveModel, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        manage.start(name, replace(model, serial=name))
    assert main(["virtual", "stop", "one", "two", "--keep", str(folder)]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("kept: ")]
    assert lines == [f"kept: {folder / 'one.flash'}", f"kept: {folder / 'two.flash'}"]
    assert manage.status() == []
    head = json.loads((folder / "two.flash").read_bytes().partition(b"\n")[0])
    assert head["model"] == replace(model, serial="two").to_mapping()
