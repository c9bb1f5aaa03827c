"""The replay engine on a device whose driver takes no request without waiting (zram): threads execute short ones."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_traces import Row
from replay_files import BLOCK, Engine, direct_read, make_records
from verified_replays import OPTIONS as VERIFIED
from verified_replays import Bench

from drivelab.fio.own_zram import CONTROL, own_zram
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay import native
from drivelab.replay.engine_records import COMPLETED, NOT_ISSUED, TARGET_SHIFT, WAITED_FOR, Records
from drivelab.replay.native import EngineOptions
from drivelab.replay.verify.verification import first_example, wrong_blocks

pytestmark = [pytest.mark.device, pytest.mark.single]

MIB = 1 << 20
PAGES = 8 * MIB // BLOCK
FUA = 1
WAITED_FOR_DEPTH = WAITED_FOR.index("depth")
OPTIONS = EngineOptions(watchdog_s=30)


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    if (reason := native.possible()) is not None:
        pytest.skip(reason)
    if os.geteuid() != 0 or not os.access(CONTROL / "hot_remove", os.W_OK):
        pytest.skip("no zram device can be made and removed")
    monkeypatch.setenv("DRIVELAB_RUN_DIR", str(tmp_path))
    with own_zram(PAGES * BLOCK) as (name, reason):
        assert name, reason
        if takes_without_waiting(f"/dev/{name}"):
            pytest.skip("this kernel's zram takes requests without waiting")
        yield Engine(tmp_path, f"/dev/{name}")


def takes_without_waiting(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        os.preadv(descriptor, [bytearray(BLOCK)], os.lseek(descriptor, 0, os.SEEK_END), os.RWF_NOWAIT)
    except OSError as error:
        return error.errno != errno.EOPNOTSUPP
    finally:
        os.close(descriptor)
    return True


def pages(operation: str, count: int = PAGES, **more: int) -> Records:
    return make_records({"operation": operation, "offset_bytes": page * BLOCK, **more} for page in range(count))


@pytest.mark.parametrize("flags", [0, FUA])
def test_data_and_order(engine: Engine, flags: int) -> None:
    ran = engine.run(pages("write", PAGES // 2, flags=flags), replace(OPTIONS, depth_limit=8))
    assert (ran.status, ran.report["state"], ran.report["synchronous"]) == (0, "finished", True)
    assert ran.report["issued"] == ran.report["completed"] == PAGES // 2
    assert (ran.results["result"] == BLOCK).all()
    assert (ran.results["issue_ns"][1:] >= ran.results["complete_ns"][:-1]).all()
    assert ran.report["most_in_flight"] == ran.results["in_flight"].max() == 1, "none is left to the device"
    data = direct_read(engine.target)
    written = {data[page * BLOCK : (page + 1) * BLOCK] for page in range(PAGES // 2)}
    assert len(written) == PAGES // 2
    assert bytes(BLOCK) not in written
    assert data[PAGES // 2 * BLOCK :] == bytes(PAGES // 2 * BLOCK)


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("threads", [1, 2])
def test_repeated_reads_at_a_depth(engine: Engine, depth: int, threads: int) -> None:
    options = replace(OPTIONS, depth_limit=depth, threads=threads, requests=20_000)
    ran = engine.run(pages("read", depth=depth), options)
    assert ran.report["completed"] == 20_000
    assert ran.report["most_in_flight"] <= min(threads, depth)


def test_at_a_greater_depth_other_threads_execute_requests_too(engine: Engine) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one CPU only")
    ran = engine.run(pages("write"), replace(OPTIONS, depth_limit=64))
    assert ran.report["completed"] == PAGES
    assert 14 < ran.report["most_in_flight"] <= 29, "28 handed over, and one of the thread's own"
    alone = ran.results["in_flight"] == 1
    assert not alone.all()
    data = direct_read(engine.target)
    assert len({data[page * BLOCK : (page + 1) * BLOCK] for page in range(PAGES)}) == PAGES


def test_deadlines_are_kept(engine: Engine) -> None:
    made = pages("read")
    made["deadline_ns"] = np.arange(PAGES) * 20_000
    ran = engine.run(made, OPTIONS)
    assert (ran.results["issue_ns"] >= made["deadline_ns"]).all()
    assert ran.report["synchronous"]


def test_a_request_that_is_due_during_another_waits_for_the_depth(engine: Engine) -> None:
    ran = engine.run_rows({}, {}, {}, options=replace(OPTIONS, depth_limit=1))
    assert ran.results["waited"].tolist() == [0, WAITED_FOR_DEPTH, WAITED_FOR_DEPTH]


def test_real_time_threads_submit(engine: Engine) -> None:
    assert not engine.run(pages("read"), replace(OPTIONS, realtime_priority=1)).report["synchronous"]


def test_a_mix_of_devices_takes_the_ring(engine: Engine, tmp_path: Path) -> None:
    """A completion of the other device would wait for requests that the thread executes."""
    other = tmp_path / "file"
    other.write_bytes(bytes(MIB))
    both = Engine(tmp_path, engine.target, others=[other])
    ran = both.run_rows({}, {"flags": 1 << TARGET_SHIFT})
    assert (ran.report["completed"], ran.report["synchronous"]) == (2, False)


@pytest.mark.parametrize("threads", [1, 2])
def test_dependents_follow(engine: Engine, threads: int) -> None:
    """Each request waits for one of the last eight; the completion inside the call makes it due."""
    made = pages("write")
    dice = np.random.default_rng(1)
    made["after"] = np.maximum(np.arange(PAGES) - dice.integers(0, 8, PAGES), 0)
    made["think_ns"] = dice.integers(0, 3, PAGES) * 1000
    ran = engine.run(made, replace(OPTIONS, threads=threads))
    assert ran.report["completed"] == PAGES
    waits = made["after"] > 0
    ready = ran.results["complete_ns"][made["after"][waits] - 1] + made["think_ns"][waits]
    assert (ran.results["issue_ns"][waits] >= ready).all()


def test_long_requests_and_flushes_take_the_ring(engine: Engine) -> None:
    longer = [{"operation": "read", "offset_bytes": n * MIB, "length_bytes": MIB} for n in range(8)]
    ran = engine.run_rows(*longer, {"operation": "flush"}, {"operation": "write"}, *longer,
                          options=replace(OPTIONS, depth_limit=8))  # fmt: skip
    assert ran.report["state"] == "finished"
    assert ran.report["synchronous"]
    assert ran.report["most_in_flight"] > 1
    assert (ran.results["result"][:8] == MIB).all()


def test_the_ring_is_used_if_nothing_is_short_or_a_kernel_thread_submits(engine: Engine) -> None:
    assert not engine.run_rows({"operation": "read", "length_bytes": MIB}).report["synchronous"]
    assert not engine.run(pages("read"), replace(OPTIONS, kernel_thread=True)).report["synchronous"]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("depth", [8, 64])
def test_reads_are_verified(engine: Engine, tmp_path: Path, depth: int, threads: int) -> None:
    """Requests of 4 to 24 KiB overlap, so some take the ring, beside those that the threads execute."""
    kinds = ("write", "read", "read", "write", "read")
    rows = [Row(n, None, n + 50, kinds[n % 5], (n * 7 % 41) * BLOCK, (1 + n % 6) * BLOCK) for n in range(3000)]
    bench = Bench(tmp_path, Path(engine.target))
    prepared = bench.prepare(rows, ReplayChoice(TimingChoice("asap", depth=depth)))
    bench.run(prepared, replace(VERIFIED, threads=threads))
    checked = bench.verified(prepared)
    assert wrong_blocks(checked) == 0, first_example(checked)
    assert checked["reads"]["unseen_blocks"] == 0
    assert checked["reads"]["required_blocks"] > 0
    assert native.engine_report(tmp_path)["synchronous"]


@pytest.mark.parametrize("go_on", [False, True])
def test_a_failed_write(engine: Engine, go_on: bool) -> None:
    """The device may use less memory than the data needs."""
    (Path("/sys/block") / Path(engine.target).name / "mem_limit").write_text(str(MIB))
    ran = engine.run(pages("write"), replace(OPTIONS, go_on=go_on, depth_limit=8))
    failed = ran.results["result"] < 0
    assert failed.any()
    assert ran.report["first_failed"] == int(np.flatnonzero(failed)[0]) > 0
    if go_on:
        assert (ran.report["state"], ran.report["completed"]) == ("finished", PAGES)
        assert (ran.results["state"] == COMPLETED).all()
    else:
        assert ran.report["state"] == "failed"
        assert (ran.results["state"][ran.report["first_failed"] + 1 :] == NOT_ISSUED).all()
