"""The replay engine on a device whose driver takes no request without waiting (zram): threads execute short ones."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from replay_files import BLOCK, Engine, direct_read, make_records

from drivelab.fio.own_zram import CONTROL, own_zram
from drivelab.replay import native
from drivelab.replay.engine_records import COMPLETED, NOT_ISSUED, Records
from drivelab.replay.native import EngineOptions

pytestmark = [pytest.mark.device, pytest.mark.single]

MIB = 1 << 20
PAGES = 8 * MIB // BLOCK
FUA = 1
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


@pytest.mark.parametrize("depth", [1, 8, 64])
@pytest.mark.parametrize("threads", [1, 2])
def test_repeated_reads_at_a_depth(engine: Engine, depth: int, threads: int) -> None:
    options = replace(OPTIONS, depth_limit=depth, threads=threads, requests=20_000)
    ran = engine.run(pages("read", depth=depth), options)
    assert ran.report["completed"] == 20_000
    assert ran.report["most_in_flight"] <= (depth if depth >= 32 else min(threads, depth))


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


@pytest.mark.parametrize("go_on", [False, True])
def test_a_failed_write(engine: Engine, go_on: bool) -> None:
    """The device may use only a part of the memory for which the data calls."""
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
        assert (ran.results["state"][-1000:] == NOT_ISSUED).all()
