"""The replay engine on files: what it does to them, and when. Devices and their faults are in tests/drives."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from replay_files import BLOCK, Engine, direct_io_trouble, direct_read, identity, make_records, start, write_schedule
from replay_semantics import Rules, violations

from drivelab.fio.document import CellFailed
from drivelab.native import ENGINE_COMPILER, ENGINE_SOURCES
from drivelab.replay import native
from drivelab.replay.native import EngineOptions
from drivelab.replay.records import (
    COMPLETED,
    LONGEST_TRANSFER_BYTES,
    NOT_ISSUED,
    OPERATION_CODES,
    SCHEDULE_RECORD,
    Records,
)

MIB = 1 << 20
MS = 1_000_000
QUICK = EngineOptions(watchdog_s=60)
TOLERANCE_NS = 2 * MS
MOST_TRIES = 25  # on a host where other tests take the processor, stalls beyond the tolerance are the rule
"""Between the engine's look at the clock and the time that it notes, on a host that does other things too."""


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    (tmp_path / "target").write_bytes(b"\xaa" * 8 * MIB)
    return Engine(tmp_path, tmp_path / "target")


def may_set_priorities() -> bool:
    """CAP_SYS_NICE, bit 23 of capabilities(7)."""
    words = Path("/proc/self/status").read_text().split()
    return bool(int(words[words.index("CapEff:") + 1], 16) >> 23 & 1)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "it never came to pass"
        time.sleep(0.01)


def endless(count: int = 100_000) -> Records:
    """A request every millisecond."""
    return make_records({"operation": "write", "deadline_ns": i * MS, "offset_bytes": i % 512 * BLOCK}
                        for i in range(count))  # fmt: skip


def test_operations_do_what_they_say(engine: Engine) -> None:
    after = iter(range(1, 10))
    ran = engine.run_rows(
        {"operation": "write", "offset_bytes": 2 * BLOCK, "length_bytes": 3 * BLOCK},
        {"operation": "write", "offset_bytes": MIB, "length_bytes": MIB, "flags": 1, "after": next(after)},
        {"operation": "flush", "after": next(after)},
        {"operation": "discard", "offset_bytes": MIB, "length_bytes": 4 * BLOCK, "after": next(after)},
        {"operation": "write-zeroes", "offset_bytes": 4 * MIB, "length_bytes": 2 * MIB, "after": next(after)},
        {"operation": "read", "offset_bytes": 7 * MIB, "length_bytes": MIB, "after": next(after)},
    )
    assert (ran.status, ran.words, ran.report["state"]) == (0, "", "finished")
    assert ran.results["result"].tolist() == [3 * BLOCK, MIB, 0, 0, 0, MIB]
    content = direct_read(engine.target)
    untouched = b"\xaa"
    assert content[: 2 * BLOCK] == untouched * 2 * BLOCK
    assert untouched * 64 not in content[2 * BLOCK : 5 * BLOCK]
    assert content[5 * BLOCK : MIB] == untouched * (MIB - 5 * BLOCK)
    assert content[MIB : MIB + 4 * BLOCK] == bytes(4 * BLOCK)
    assert bytes(64) not in content[MIB + 4 * BLOCK : 2 * MIB]
    assert content[2 * MIB : 4 * MIB] == untouched * 2 * MIB
    assert content[4 * MIB : 6 * MIB] == bytes(2 * MIB)
    assert content[6 * MIB :] == untouched * 2 * MIB
    assert Path(engine.target).stat().st_blocks * 512 < 8 * MIB, "what was discarded takes no room any more"


@pytest.mark.parametrize("block_bytes", [BLOCK, 16 * BLOCK])
def test_no_two_written_blocks_are_equal(engine: Engine, block_bytes: int) -> None:
    """More in flight than the buffers hold: 32 MiB of 4 MiB each, then small ones; onto 8 MiB twice."""
    os.truncate(engine.target, 48 * MIB)
    engine.target_bytes = 48 * MIB
    made = make_records(
        [{"operation": "write", "offset_bytes": i * 4 * MIB, "length_bytes": 4 * MIB} for i in range(8)]
        + [{"operation": "write", "offset_bytes": i * 16 * BLOCK + 32 * MIB, "length_bytes": 16 * BLOCK}
           for i in range(256)]
    )  # fmt: skip
    seen: set[bytes] = set()
    for repeat in range(2):  # the same schedule again: other data, and nothing of what was there is left
        ran = engine.run(made, block_bytes=block_bytes)
        assert ran.report["completed"] == 264
        content = direct_read(engine.target)
        blocks = {content[at : at + BLOCK] for at in range(0, 48 * MIB, block_bytes)}
        assert len(blocks) == 48 * MIB // block_bytes
        seen |= blocks
        assert len(seen) == (repeat + 1) * 48 * MIB // block_bytes
    assert len(zlib.compress(content, 1)) > 0.99 * len(content)


def test_a_seed_repeats_the_data(engine: Engine) -> None:
    made = make_records({"operation": "write", "offset_bytes": i * BLOCK, "depth": 1} for i in range(64))
    contents = []
    for seed in (7, 7, 8):
        engine.run(made, EngineOptions(watchdog_s=60, seed=seed))
        contents.append(direct_read(engine.target, 0, 64 * BLOCK))
    assert contents[0] == contents[1] != contents[2]


def test_the_longest_transfer(engine: Engine) -> None:
    os.truncate(engine.target, LONGEST_TRANSFER_BYTES)
    engine.target_bytes = LONGEST_TRANSFER_BYTES
    ran = engine.run_rows(
        {"operation": "write", "length_bytes": LONGEST_TRANSFER_BYTES},
        {"operation": "read", "length_bytes": LONGEST_TRANSFER_BYTES, "after": 1},
    )
    assert ran.results["result"].tolist() == [LONGEST_TRANSFER_BYTES] * 2
    assert bytes(4096) not in direct_read(engine.target)


def sound(engine: Engine, made: Records, options: EngineOptions = QUICK) -> None:
    """Run and hold the results against the rules. What a stall of the host makes look wrong is right another time."""
    for _ in range(MOST_TRIES):
        ran = engine.run(made, options)
        assert ran.report["state"] == "finished"
        assert (ran.results["state"] == COMPLETED).all()
        assert ran.report["most_in_flight"] == ran.results["in_flight"].max(initial=0)
        lax = Rules(options.depth_limit, tolerance_ns=1 << 62)
        assert [one for one in violations(ran.schedule, ran.results, lax) if "tells of" not in one] == []
        found = violations(ran.schedule, ran.results, Rules(options.depth_limit, tolerance_ns=TOLERANCE_NS))
        if not found:
            return
    raise AssertionError("\n".join(found))


@st.composite
def schedules(draw: st.DrawFn) -> Records:
    count = draw(st.integers(1, 120))
    gaps_ns = draw(st.lists(st.sampled_from([0, 0, 0, 1000, 50_000, MS, 4 * MS]), min_size=count, max_size=count))
    dependent = draw(st.sampled_from([0, 2, 10]))
    rows, deadline_ns = [], 0
    for index, gap_ns in enumerate(gaps_ns):
        deadline_ns += gap_ns
        depends = index and draw(st.integers(0, 10)) < dependent
        operation = draw(st.sampled_from(["read", "read", "write", "write", "flush"]))
        rows.append({
            "operation": operation, "deadline_ns": deadline_ns,
            "length_bytes": 0 if operation == "flush" else draw(st.sampled_from([BLOCK, 64 * BLOCK])),
            "offset_bytes": 0 if operation == "flush" else draw(st.integers(0, 63)) * BLOCK,
            "after": draw(st.integers(max(1, index - 20), index)) if depends else 0,
            "think_ns": draw(st.sampled_from([0, 20_000, 3 * MS])) if depends else 0,
            "depth": draw(st.sampled_from([0, 0, 1, 3])),
        })  # fmt: skip
    return make_records(rows)


# Not shrunk: each attempt takes several replays in real time.
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip
@given(schedules(), st.sampled_from([1, 2, 32]))
def test_keeps_to_the_rules_of_a_schedule(engine: Engine, made: Records, depth: int) -> None:
    sound(engine, made, EngineOptions(watchdog_s=60, depth_limit=depth))


def test_chains_as_soon_as_possible(engine: Engine) -> None:
    """More that wait than the engine keeps in mind: 64 chains of requests, each waiting for the one before it."""
    count = 600_000
    made = np.zeros(count, SCHEDULE_RECORD)
    made["operation"], made["depth"] = OPERATION_CODES["read"], 128
    made["length_bytes"], made["offset_bytes"] = BLOCK, np.arange(count) % 64 * BLOCK
    made["after"][64:] = np.arange(1, count - 63)
    ran = engine.run(made)
    assert ran.report["completed"] == count
    assert ran.report["most_in_flight"] <= 64
    awaited = ran.results["complete_ns"][made["after"][64:] - 1]
    assert (ran.results["issue_ns"][64:] >= awaited).all()
    assert (ran.results["waited"][64:] == 2).all()


def test_memory_is_bounded(engine: Engine) -> None:
    """Schedule and results are 64 MB, of which little is resident at any time."""
    made = np.zeros(1_000_000, SCHEDULE_RECORD)
    made["operation"], made["depth"], made["length_bytes"] = OPERATION_CODES["write"], 32, BLOCK
    process = engine.start(made)
    peaks_kib = [0]

    def nearly_done() -> bool:
        status = Path(f"/proc/{process.pid}/status").read_text()
        peaks_kib.append(int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0)
        return bool(engine.live_header()["completed"] > 900_000)

    wait_for(nearly_done, process)
    assert engine.ended(process).report["completed"] == 1_000_000
    assert 16_000 < max(peaks_kib) < 48_000


def test_reads_never_share_memory(tmp_path: Path) -> None:
    """Of all sizes, more than the registered part holds, given back in any order, until there is no room for more."""
    program = tmp_path / "buffers"
    sources = [Path(__file__).with_name("buffers_main.c"), ENGINE_SOURCES / "buffers.c"]
    subprocess.run([*ENGINE_COMPILER, f"-I{ENGINE_SOURCES}", "-o", str(program), *map(str, sources)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told = dict(line.split() for line in done.stdout.splitlines())
    assert int(told["registered"]) > 0
    assert int(told["unregistered"]) > 0
    assert int(told["refused"]) > 0
    assert int(told["reach_at_depth_32_bytes"]) <= 2 * 32 * BLOCK, "small depths stay within the CPU cache"


@pytest.mark.parametrize("length_bytes", [BLOCK, MIB])
def test_reads_take_as_much_memory_as_is_in_flight(engine: Engine, length_bytes: int) -> None:
    made = np.zeros(20_000 if length_bytes == BLOCK else 3000, SCHEDULE_RECORD)
    made["operation"], made["depth"], made["length_bytes"] = OPERATION_CODES["read"], 16, length_bytes
    process = engine.start(made)
    peak_kib = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        peak_kib = max(peak_kib, int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0)
        time.sleep(0.01)
    assert engine.ended(process).report["completed"] == len(made)
    assert 4_000 < peak_kib < 16_000 + 16 * length_bytes // 1024


@pytest.mark.skipif(not may_set_priorities(), reason="real-time priority takes CAP_SYS_NICE")
def test_the_priority_is_not_inherited(engine: Engine) -> None:
    process = engine.start(endless(), EngineOptions(watchdog_s=60, realtime_priority=10))
    wait_for(lambda: len(policies(process.pid)) > 1, process)
    threads = policies(process.pid)
    process.terminate()
    assert engine.ended(process).report["failed"] == 0
    assert threads.pop(process.pid) == os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
    assert set(threads.values()) == {os.SCHED_OTHER}


def policies(pid: int) -> dict[int, int]:
    """Scheduling policy of each thread of a process, the kernel's workers included, once it completes requests."""
    threads = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # a worker that had nothing to do
            threads[int(task.name)] = os.sched_getscheduler(int(task.name))
    return threads


def test_the_think_time_is_kept(engine: Engine) -> None:
    ran = engine.run_rows({}, {"after": 1, "think_ns": 30 * MS}, {"after": 1, "think_ns": 10 * MS}, {})
    issue, complete = ran.results["issue_ns"].astype(np.int64), ran.results["complete_ns"].astype(np.int64)
    assert issue[1] >= complete[0] + 30 * MS
    assert complete[0] + 10 * MS <= issue[2] < issue[1]
    assert issue[3] < issue[2]
    assert ran.results["waited"].tolist() == [0, 2, 2, 0]


def test_as_soon_as_possible_fills_the_depth(engine: Engine) -> None:
    made = make_records({"offset_bytes": i % 512 * BLOCK, "depth": 8} for i in range(5000))
    ran = engine.run(made)
    assert ran.report["most_in_flight"] == 8
    assert (ran.results["in_flight"][8:] > 4).mean() > 0.5
    assert ran.results["waited"].tolist() == [0] * 8 + [1] * 4992


def test_a_burst_goes_at_once(engine: Engine) -> None:
    """32 at one time are submitted together: one time of issue, as long as the host does not stall the engine."""
    made = make_records({"deadline_ns": i // 32 * 5 * MS} for i in range(320))
    ran = engine.run(made)
    spread = ran.results["issue_ns"].reshape(10, 32)
    assert sorted(ran.results["in_flight"].reshape(10, 32)[0]) == list(range(1, 33))
    assert ((spread.max(axis=1) - spread.min(axis=1)) == 0).sum() >= 5


def test_begins_anew_for_more_requests(engine: Engine) -> None:
    made = make_records({"operation": "write", "offset_bytes": i * BLOCK, "depth": 4} for i in range(10))
    ran = engine.run(made, EngineOptions(watchdog_s=60, requests=1037))
    assert (ran.report["state"], ran.report["completed"], len(ran.results)) == ("finished", 1037, 1037)
    assert violations(ran.schedule, ran.results, Rules(4096, tolerance_ns=1 << 62)) == []
    few = engine.run(made, EngineOptions(watchdog_s=60, requests=3))
    assert (few.report["completed"], len(few.results)) == (3, 3)


@pytest.mark.parametrize("row", [{"deadline_ns": 5}, {"after": 1}])
def test_does_not_begin_anew_with_times_or_dependencies(engine: Engine, row: dict[str, int]) -> None:
    ran = engine.run(make_records([{}, row]), EngineOptions(watchdog_s=60, requests=3))
    assert ran.status == 2
    assert "begin anew" in ran.words


def test_the_time_is_up(engine: Engine) -> None:
    ran = engine.run(endless(), EngineOptions(watchdog_s=60, runtime_s=0.25))
    assert (ran.status, ran.report["state"]) == (0, "time is up")
    assert 0 < ran.report["issued"] <= 250
    assert ran.report["issued"] == ran.report["completed"] == (ran.results["state"] == COMPLETED).sum()
    assert ran.issued["issue_ns"].max() < 250 * MS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_cleanly(engine: Engine, number: signal.Signals) -> None:
    process = engine.start(endless())
    wait_for(lambda: engine.live_header()["completed"] > 20, process)
    process.send_signal(number)
    ran = engine.ended(process)
    assert (ran.status, ran.report["state"], ran.report["signal"]) == (0, "interrupted", number)
    assert ran.report["issued"] == ran.report["completed"] == (ran.results["state"] == COMPLETED).sum() > 20


def test_killed_midway_what_completed_is_kept(engine: Engine) -> None:
    process = engine.start(endless())
    wait_for(lambda: engine.live_header()["completed"] > 20, process)
    process.kill()
    ran = engine.ended(process)
    assert (ran.status, ran.report["state"]) == (-signal.SIGKILL, "running")
    done = ran.results[ran.results["state"] == COMPLETED]
    assert len(done) > 20
    assert (done["result"] == BLOCK).all()
    assert abs(len(done) - ran.report["completed"]) <= 32
    assert not ran.results[ran.results["state"] == NOT_ISSUED]["complete_ns"].any()


def test_the_heartbeat_goes_on_while_nothing_is_due(engine: Engine) -> None:
    process = engine.start(make_records([{}, {"deadline_ns": 3600 * 10**9}]))
    wait_for(lambda: engine.live_header()["heartbeat_ns"] > 10**9, process)
    process.terminate()
    ran = engine.ended(process)
    assert (ran.report["state"], ran.report["completed"]) == ("interrupted", 1)


def test_a_short_read_is_a_failure(engine: Engine) -> None:
    """The file gets shorter after it was looked at."""
    made = make_records([{}, *({"offset_bytes": 4 * MIB, "deadline_ns": 200 * MS + i} for i in range(2)),
                         {"deadline_ns": 300 * MS}])  # fmt: skip
    for go_on in (False, True):
        os.truncate(engine.target, 8 * MIB)
        process = engine.start(made, EngineOptions(watchdog_s=60, go_on=go_on))
        wait_for(lambda: engine.live_header()["completed"] == 1, process)
        os.truncate(engine.target, 4 * MIB)
        ran = engine.ended(process)
        assert (ran.status, ran.report["state"]) == (0, "finished" if go_on else "failed")
        assert ran.report["first_failed"] == 1
        assert ran.results["result"].tolist() == [BLOCK, 0, 0, BLOCK if go_on else 0]
        assert ran.results["state"][3] == (COMPLETED if go_on else NOT_ISSUED)


def test_nothing_to_do(engine: Engine) -> None:
    ran = engine.run(make_records([]))
    assert (ran.status, ran.report["state"], ran.report["issued"]) == (0, "finished", 0)


def test_cpu_and_spinning_are_as_asked(engine: Engine) -> None:
    ran = engine.run_rows({}, options=EngineOptions(watchdog_s=60, cpu=0, spin_us=123))
    assert (ran.report["state"], ran.report["spin_us"]) == ("finished", 123)
    refused = engine.run_rows({}, options=EngineOptions(watchdog_s=60, cpu=0), cpu="1023")
    assert (refused.status, refused.report["state"]) == (5, "prepared")
    assert "CPU 1023" in refused.words
    noise = ran.report["wakeup_us"]
    assert 0 <= noise["p50"] <= noise["p95"] <= noise["p99"] <= noise["max"]


def write() -> Records:
    return make_records([{"operation": "write"}])


def test_only_the_approved_target_is_written(engine: Engine, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(bytes(8 * MIB))
    process = start(engine.prepare(write(), QUICK, identity=identity(other)))
    ran = engine.ended(process)
    assert ran.status == 4
    assert "approved was 'file" in ran.words
    assert "nothing was written" in ran.words
    assert direct_read(engine.target) == b"\xaa" * 8 * MIB
    assert (ran.report["state"], ran.report["issued"]) == ("prepared", 0)


@pytest.mark.parametrize("kind", ["pipe", "folder", "terminal", "nothing"])
def test_other_things_are_no_targets(engine: Engine, tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "terminal":
        path = Path("/dev/null")
    ran = engine.ended(start(engine.prepare(make_records([{}]), QUICK, target=str(path))))
    assert ran.status == 4
    assert str(path) in ran.words


def test_a_target_that_is_too_small(engine: Engine) -> None:
    words = engine.prepare(write(), QUICK)
    os.truncate(engine.target, 8 * MIB - BLOCK)
    ran = engine.ended(start(words))
    assert ran.status == 4
    assert f"has {8 * MIB - BLOCK} bytes, the schedule is for {8 * MIB}" in ran.words
    assert direct_read(engine.target) == b"\xaa" * (8 * MIB - BLOCK)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:-1], "cut off or damaged"),
        (lambda data: data[:-40], "cut off or damaged"),
        (lambda data: data[:20], "is no schedule"),
        (lambda data: b"", "is no schedule"),
        (lambda data: b"X" + data[1:], "is no schedule"),
        (lambda data: data[:72] + bytes([data[72] ^ 128]) + data[73:], "borders of blocks"),
        (lambda data: data[:73] + bytes([data[73] ^ 16]) + data[74:], "checksum does not agree"),
    ],
)
def test_a_damaged_schedule(engine: Engine, damage: Callable[[bytes], bytes], words: str) -> None:
    line = engine.prepare(write(), QUICK)
    path = Path(line[line.index("--schedule") + 1])
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    process = start(line)
    _, said = process.communicate()
    assert process.returncode == 3
    assert said.startswith(f"drivelab-replay: {path}: ")
    assert len(said.splitlines()) == 1
    assert words in said
    assert direct_read(engine.target) == b"\xaa" * 8 * MIB


def test_results_of_another_schedule(engine: Engine, tmp_path: Path) -> None:
    line = engine.prepare(write(), QUICK)
    line[line.index("--schedule") + 1] = str(write_schedule(tmp_path / "other.schedule", make_records([{}]), MIB))
    ran = engine.ended(start(line))
    assert ran.status == 6
    assert "another schedule" in ran.words


def test_results_are_not_overwritten(engine: Engine) -> None:
    line = engine.prepare(write(), QUICK)
    assert start(line).wait() == 0
    process = start(line)
    _, said = process.communicate()
    assert process.returncode == 6
    assert "has been used" in said


@pytest.mark.parametrize("words", ["--depth 0", "--depth 4097", "--watchdog-s nan", "--what", "x"])
def test_a_wrong_command_line(engine: Engine, words: str) -> None:
    process = start([*engine.prepare(write(), QUICK), *words.split()])
    _, said = process.communicate()
    assert process.returncode == 2
    assert len(said.splitlines()) == 1


def without_locked_memory(command: list[str], memlock_kib: int) -> list[str]:
    """Run a command that may lock no more memory than this: CAP_IPC_LOCK would lift the limit."""
    no_capability = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    return ["prlimit", f"--memlock={memlock_kib << 10}:{memlock_kib << 10}", *no_capability, *command]


LITTLE_KIB = 2048
"""Enough to lock the ring, not the areas of the data."""


def test_a_ring_that_gets_no_memory_is_refused(engine: Engine) -> None:
    ran = engine.ended(start(without_locked_memory(engine.prepare(write(), QUICK), memlock_kib=0)))
    assert ran.status == 5
    assert "(ulimit -l)" in ran.words


def test_buffers_are_plain_where_too_little_memory_can_be_locked(engine: Engine) -> None:
    made = make_records({"operation": ("write", "read")[i % 2], "offset_bytes": i // 2 * BLOCK, "depth": 1}
                        for i in range(200))  # fmt: skip
    ran = engine.ended(start(without_locked_memory(engine.prepare(made, QUICK), LITTLE_KIB)))
    assert (ran.status, ran.words) == (0, "")
    assert (ran.report["state"], ran.report["completed"], ran.report["buffers"]) == ("finished", 200, "plain")
    content = direct_read(engine.target, 0, 100 * BLOCK)
    assert len({content[at : at + BLOCK] for at in range(0, len(content), BLOCK)}) == 100


def test_plain_and_registered_buffers_write_the_same_data(engine: Engine) -> None:
    """Also what does not fit into the areas: 32 MiB in flight."""
    os.truncate(engine.target, 48 * MIB)
    engine.target_bytes = 48 * MIB
    made = make_records({"operation": "write", "offset_bytes": i * 4 * MIB, "length_bytes": 4 * MIB} for i in range(8))
    contents = []
    for limited in (False, True):
        command = engine.prepare(made, EngineOptions(watchdog_s=60, seed=7))
        ran = engine.ended(start(without_locked_memory(command, LITTLE_KIB) if limited else command))
        assert ran.status == 0, ran.words
        contents.append(direct_read(engine.target))
    assert contents[0] == contents[1]


def test_run_engine_leaves_the_evidence(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", endless(1200), 8 * MIB)
    directory = tmp_path / "cell"
    ticks: list[float] = []
    directory.mkdir()
    timing = native.run_engine(
        engine.target, identity(engine.target), schedule, directory, QUICK, on_tick=ticks.append
    )  # fmt: skip
    assert ticks
    report = native.engine_report(directory)
    assert (report["state"], report["completed"], report["first_failed"]) == ("finished", 1200, None)
    assert timing.started_s < report["start_monotonic_ns"] / 1e9 < timing.ended_s - 1.19
    assert {one.name for one in directory.iterdir()} == {"results.bin", "command.json", "stdout", "stderr", "exit_code"}


def test_run_engine_tells_why_it_refused(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", write(), 16 * MIB)
    with pytest.raises(CellFailed, match="the target has 8388608 bytes"):
        native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, QUICK)


def test_run_engine_returns_when_the_engine_is_killed(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", endless(), 8 * MIB)

    def kill(elapsed_s: float) -> None:
        (pid,) = [int(one.name) for one in Path("/proc").glob("[0-9]*") if str(schedule) in _command_of(one)]
        os.kill(pid, signal.SIGKILL)

    native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, QUICK, on_tick=kill)
    assert (tmp_path / "exit_code").read_text() == "-9\n"
    report = native.engine_report(tmp_path)
    assert report["state"] == "running"
    assert report["completed"] > 0


def test_what_a_tick_raises_ends_the_engine(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", endless(), 8 * MIB)

    def give_up(elapsed_s: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, QUICK, on_tick=give_up)
    assert not [one for one in Path("/proc").glob("[0-9]*") if str(schedule) in _command_of(one)]


def test_a_stopped_engine_is_ended(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "GRACE_S", 1.0)
    schedule = write_schedule(tmp_path / "s.schedule", endless(), 8 * MIB)

    def stop(elapsed_s: float) -> None:
        for one in Path("/proc").glob("[0-9]*"):
            if str(schedule) in _command_of(one):
                os.kill(int(one.name), signal.SIGSTOP)

    options = EngineOptions(watchdog_s=1)
    native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, options, on_tick=stop)
    assert native.engine_report(tmp_path)["state"] == "running"
    assert not [one for one in Path("/proc").glob("[0-9]*") if str(schedule) in _command_of(one)]


def _command_of(process: Path) -> str:
    try:
        return (process / "cmdline").read_bytes().decode(errors="replace")
    except OSError:
        return ""
