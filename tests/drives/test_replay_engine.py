"""The replay engine on block devices: what the device sees, and the effect of its faults."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from loops import looped, mounted
from replay_files import BLOCK, Engine, direct_read, identity, make_records, start, write_schedule
from waits import wait_until

from drivelab.replay import native
from drivelab.replay.engine_records import COMPLETED, ISSUED, NOT_ISSUED, Records
from drivelab.replay.native import EngineOptions
from drivelab.virtual import manage
from drivelab.virtual.faults import Fault
from drivelab.virtual.manage import VirtualDrive

pytestmark = [pytest.mark.device, pytest.mark.single, pytest.mark.usefixtures("engine_possible")]


MIB = 1 << 20
MS = 1_000_000
EIO, ENODATA = -5, -61
STAT_WRITES, STAT_FLUSHES = 4, 15
"""Fields of /sys/block/NAME/stat (Documentation/block/stat.rst)."""


@pytest.fixture
def engine(tmp_path: Path, attach: Callable[[int, int], str]) -> Engine:
    return Engine(tmp_path, attach(64, BLOCK))


@pytest.fixture
def on_drive(drive: VirtualDrive, tmp_path: Path) -> Engine:
    folder = tmp_path / "engine"
    folder.mkdir()
    return Engine(folder, drive.device)


def stat(device: str) -> list[int]:
    return [int(field) for field in Path("/sys/block", Path(device).name, "stat").read_text().split()]


def random_requests(count: int, every_ns: int, operation: str = "read", pages: int = 4096) -> Records:
    dice = np.random.default_rng(5)
    return make_records(
        {"operation": operation, "deadline_ns": i * every_ns, "offset_bytes": int(dice.integers(0, pages)) * BLOCK}
        for i in range(count)
    )


@pytest.mark.parametrize(("operation", "flags", "flushes"), [("write", 0, 0), ("write", 1, 10), ("flush", 0, 10)])
def test_the_device_counts_flushes(engine: Engine, operation: str, flags: int, flushes: int) -> None:
    """A loop device has a volatile cache and no FUA, so a FUA write becomes a write and a flush."""
    rows = [{"operation": operation, "flags": flags, "offset_bytes": 0, "after": i} for i in range(10)]
    before = stat(engine.target)
    ran = engine.run_rows(*rows)
    assert ran.report["failed"] == 0
    assert stat(engine.target)[STAT_FLUSHES] - before[STAT_FLUSHES] == flushes
    assert stat(engine.target)[STAT_WRITES] - before[STAT_WRITES] >= (10 if operation == "write" else 0)


def test_a_read_only_replay_opens_the_target_for_reading(engine: Engine) -> None:
    process = engine.start(make_records([{}, {"operation": "flush"}, {"deadline_ns": 3600 * 10**9}]))
    wait_until(lambda: engine.live_header()["completed"] == 2, process)
    folder = Path(f"/proc/{process.pid}")
    numbers = [link.name for link in (folder / "fd").iterdir() if str(link.readlink()) == engine.target]
    infos = [(folder / "fdinfo" / number).read_text().split() for number in numbers]
    modes = [int(info[info.index("flags:") + 1], 8) & os.O_ACCMODE for info in infos]
    process.terminate()
    assert engine.ended(process).report["failed"] == 0
    assert modes == [os.O_RDONLY]


@pytest.mark.parametrize("block_bytes", [512, BLOCK])
def test_small_blocks(tmp_path: Path, attach: Callable[[int, int], str], block_bytes: int) -> None:
    engine = Engine(tmp_path, attach(1, block_bytes))
    rows = [{"operation": "write", "offset_bytes": i * 512, "length_bytes": 512} for i in range(2048)]
    ran = engine.run(make_records(rows), block_bytes=512)
    if block_bytes == BLOCK:
        assert ran.status == 4
        assert f"logical blocks of {BLOCK} bytes, the schedule is for 512" in ran.words
    else:
        assert (ran.status, ran.report["failed"]) == (0, 0)
        content = direct_read(engine.target)
        assert len({content[at : at + 512] for at in range(0, MIB, 512)}) == 2048


@pytest.fixture
def on_btrfs(tmp_path: Path, attach: Callable[[int, int], str]) -> Iterator[Engine]:
    """A target that verifies reads in the memory of the request."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("mkfs.btrfs is not installed")
    with mounted(attach(256, BLOCK), tmp_path / "mounted", "btrfs") as folder:
        (folder / "image").write_bytes(os.urandom(64 * MIB))
        with looped(folder / "image", f"--sector-size={BLOCK}", "--direct-io=on") as target:
            yield Engine(tmp_path, target)


def test_reads_that_are_verified_in_their_memory(on_btrfs: Engine) -> None:
    dice = np.random.default_rng(3)
    length_bytes = 128 << 10
    records = make_records(
        {"depth": 32, "length_bytes": length_bytes, "offset_bytes": int(page) * BLOCK}
        for page in dice.integers(0, (64 * MIB - length_bytes) // BLOCK, 4000)
    )
    ran = on_btrfs.run(records, EngineOptions(watchdog_s=60, go_on=True))
    assert (ran.report["completed"], ran.report["failed"]) == (4000, 0)


def test_another_device_of_the_same_name_is_refused(tmp_path: Path, engine: Engine) -> None:
    kind, numbers, sequence = identity(engine.target).split()
    if sequence == "-":
        pytest.skip("this kernel has no disk sequence numbers")
    for wrong in (f"{kind} {numbers} {int(sequence) - 1}", f"{kind} 1:99 {sequence}", f"{kind} {numbers} -"):
        ran = engine.ended(
            start(engine.prepare(make_records([{"operation": "write"}]), EngineOptions(), identity=wrong))
        )
        assert ran.status == 4
        assert "nothing was written" in ran.words
    assert direct_read(engine.target, 0, BLOCK) == bytes(BLOCK)


def test_a_device_that_is_too_small_is_refused(tmp_path: Path, engine: Engine) -> None:
    engine.target_bytes += BLOCK
    ran = engine.run_rows({"operation": "write"})
    assert ran.status == 4
    assert f"has {64 * MIB} bytes, the schedule is for {64 * MIB + BLOCK}" in ran.words


@pytest.mark.parametrize("number", [EIO, ENODATA])
@pytest.mark.parametrize("go_on", [False, True])
def test_an_error_of_the_drive(on_drive: Engine, number: int, go_on: bool) -> None:
    manage.set_fault("test", Fault("error", "read", 100 * BLOCK, BLOCK, -number))
    rows = [{"offset_bytes": (100 if i in (40, 60) else i) * BLOCK, "deadline_ns": i * MS} for i in range(80)]
    # at most eight at a time, so that on a busy machine the second bad request never begins before the first ends
    ran = on_drive.run_rows(*rows, options=EngineOptions(watchdog_s=60, go_on=go_on, depth_limit=8))
    assert (ran.status, ran.report["state"]) == (0, "finished" if go_on else "failed")
    assert ran.report["first_failed"] == 40
    bad = ran.results["result"] < 0
    if go_on:
        assert np.flatnonzero(bad).tolist() == [40, 60]
        assert (ran.report["completed"], ran.report["failed"]) == (80, 2)
    else:
        assert np.flatnonzero(bad).tolist() == [40]
        assert 41 <= ran.report["issued"] == ran.report["completed"] < 80
        assert (ran.results["state"][ran.report["issued"] :] == NOT_ISSUED).all()
    assert set(ran.results["result"][bad]) == {number}
    assert (ran.results["result"][:40] == BLOCK).all()


def test_dependents_of_a_failed_request_are_issued(on_drive: Engine) -> None:
    manage.set_fault("test", Fault("error", "read", 0, BLOCK))
    ran = on_drive.run_rows({}, {"offset_bytes": BLOCK, "after": 1}, options=EngineOptions(watchdog_s=60, go_on=True))
    assert ran.results["result"].tolist() == [EIO, BLOCK]


@pytest.mark.parametrize("operation", ["read", "discard"])
def test_a_hang_is_detected(on_drive: Engine, operation: str) -> None:
    records = random_requests(30_000, MS, operation)
    process = on_drive.start(records, EngineOptions(watchdog_s=5))
    wait_until(lambda: on_drive.live_header()["completed"] > 50, process)
    manage.set_fault("test", Fault("hang"))
    wait_until(lambda: on_drive.live_header()["state"] > 1, process)
    manage.clear_faults("test")  # threads that wait for the drive end only when it answers
    ran = on_drive.ended(process)
    assert (ran.status, ran.report["state"]) == (7, "hung")
    assert ran.report["completed"] == (ran.results["state"] == COMPLETED).sum() > 50
    assert ran.report["issued"] - ran.report["completed"] == (ran.results["state"] == ISSUED).sum() > 0
    assert ran.report["issued"] < 30_000


def test_run_engine_ends_a_hanging_engine(on_drive: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_EXIT_S", 1.0)
    records = random_requests(30_000, MS, "discard")
    schedule = write_schedule(on_drive.folder / "s.schedule", records, on_drive.target_bytes)
    events: list[str] = []

    def tick(elapsed_s: float) -> None:
        if not events:
            events.append("hang")
            manage.set_fault("test", Fault("hang"))

    def on_hang() -> None:
        events.append("release")
        manage.clear_faults("test")

    native.run_engine(on_drive.target, identity(on_drive.target), schedule, on_drive.folder,
                      EngineOptions(watchdog_s=5), on_tick=tick, on_hang=on_hang)  # fmt: skip
    assert events[0] == "hang"
    assert native.engine_report(on_drive.folder)["state"] == "hung"


@pytest.mark.parametrize("go_on", [False, True])
def test_a_drive_that_disappears(on_drive: Engine, go_on: bool) -> None:
    count = 10_000 if go_on else 30_000  # more than are due before this process sees the first ones
    process = on_drive.start(random_requests(count, MS), EngineOptions(watchdog_s=30, go_on=go_on))
    wait_until(lambda: on_drive.live_header()["completed"] > 50, process)
    manage.set_fault("test", Fault("gone"))
    ran = on_drive.ended(process)
    assert (ran.status, ran.report["state"]) == (0, "finished" if go_on else "failed")
    assert ran.report["failed"] == (ran.results["result"] < 0).sum() > 0
    assert ran.report["first_failed"] == np.flatnonzero(ran.results["result"] < 0)[0]
    if go_on:
        assert ran.report["completed"] == count


def test_a_signal_while_the_drive_hangs(on_drive: Engine) -> None:
    process = on_drive.start(random_requests(30_000, MS), EngineOptions(watchdog_s=15))
    wait_until(lambda: on_drive.live_header()["completed"] > 50, process)
    manage.set_fault("test", Fault("hang"))
    # Requests that the drive had before may still complete; those after the fault never do.
    before = on_drive.live_header()["issued"]
    wait_until(lambda: on_drive.live_header()["issued"] > before + 5, process)
    process.terminate()
    ran = on_drive.ended(process)
    assert (ran.status, ran.report["state"], ran.report["signal"]) == (7, "hung", 15)
    manage.clear_faults("test")


@pytest.fixture(autouse=True)
def _nothing_hangs_on() -> Iterator[None]:
    yield
    for drive in manage.status():
        if drive.alive:
            manage.clear_faults(drive.name)
