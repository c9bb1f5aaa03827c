"""The replay engine on files: what it writes and when. tests/drives has the tests on devices and with faults."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from replay_files import (
    BLOCK,
    Engine,
    Ran,
    direct_io_trouble,
    direct_read,
    engines_of,
    identity,
    make_records,
    start,
    write_schedule,
)
from replay_semantics import Rules, violations
from waits import wait_until

from drivelab.core import programs
from drivelab.core.errors import CellFailed, UserError
from drivelab.native import ENGINE_COMPILER, ENGINE_SOURCES
from drivelab.replay import native
from drivelab.replay.engine_records import (
    COMPLETED,
    LONGEST_TRANSFER_BYTES,
    NOT_ISSUED,
    OPERATION_CODES,
    SCHEDULE_RECORD,
    Records,
    open_results,
)
from drivelab.replay.native import EngineOptions

MIB = 1 << 20
MS = 1_000_000
QUICK = EngineOptions(watchdog_s=60)
TOLERANCE_NS = 2 * MS
"""Between the engine's reading of the clock and the time that it records."""
MOST_TRIES = 10


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    if (reason := native.possible() or direct_io_trouble(tmp_path)) is not None:
        pytest.skip(reason)
    (tmp_path / "target").write_bytes(b"\xaa" * 8 * MIB)
    return Engine(tmp_path, tmp_path / "target")


def endless(count: int = 100_000) -> Records:
    """Make a request every millisecond."""
    return make_records({"operation": "write", "deadline_ns": i * MS, "offset_bytes": i % 512 * BLOCK}
                        for i in range(count))  # fmt: skip


@pytest.mark.parametrize("options", [
    EngineOptions(watchdog_s=30), EngineOptions(watchdog_s=30, kernel_thread=True),
    EngineOptions(watchdog_s=30, threads=2, kernel_thread=True),
])  # fmt: skip
def test_operations_have_the_right_effect(engine: Engine, options: EngineOptions) -> None:
    after = iter(range(1, 10))
    ran = engine.run_rows(
        {"operation": "write", "offset_bytes": 2 * BLOCK, "length_bytes": 3 * BLOCK},
        {"operation": "write", "offset_bytes": MIB, "length_bytes": MIB, "flags": 1, "after": next(after)},
        {"operation": "flush", "after": next(after)},
        {"operation": "discard", "offset_bytes": MIB, "length_bytes": 4 * BLOCK, "after": next(after)},
        {"operation": "write-zeroes", "offset_bytes": 4 * MIB, "length_bytes": 2 * MIB, "after": next(after)},
        {"operation": "read", "offset_bytes": 7 * MIB, "length_bytes": MIB, "after": next(after)},
        options=options,
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
    assert Path(engine.target).stat().st_blocks * 512 < 8 * MIB, "the discarded blocks still take space"


@pytest.mark.parametrize("block_bytes", [BLOCK, 16 * BLOCK])
def test_no_two_written_blocks_are_equal(engine: Engine, block_bytes: int) -> None:
    """More data in flight than the buffers hold: 32 MiB in requests of 4 MiB, then small requests; twice."""
    os.truncate(engine.target, 48 * MIB)
    engine.target_bytes = 48 * MIB
    records = make_records(
        [{"operation": "write", "offset_bytes": i * 4 * MIB, "length_bytes": 4 * MIB} for i in range(8)]
        + [{"operation": "write", "offset_bytes": i * 16 * BLOCK + 32 * MIB, "length_bytes": 16 * BLOCK}
           for i in range(256)]
    )  # fmt: skip
    seen: set[bytes] = set()
    for repeat in range(2):  # the second replay writes other data and leaves none of the old data
        ran = engine.run(records, block_bytes=block_bytes)
        assert ran.report["completed"] == 264
        content = direct_read(engine.target)
        blocks = {content[at : at + BLOCK] for at in range(0, 48 * MIB, block_bytes)}
        assert len(blocks) == 48 * MIB // block_bytes
        seen |= blocks
        assert len(seen) == (repeat + 1) * 48 * MIB // block_bytes
    assert len(zlib.compress(content, 1)) > 0.99 * len(content)


def test_a_seed_repeats_the_keys_of_blocks_with_any_number_of_threads(engine: Engine) -> None:
    """More data in flight than the buffers hold, in several blocks a request."""
    records = make_records({"operation": "write", "offset_bytes": i * 2 * BLOCK, "length_bytes": 2 * BLOCK}
                           for i in range(1024))  # fmt: skip
    keys = []
    for seed, threads in ((7, 1), (7, 3), (8, 1)):
        engine.run(records, EngineOptions(watchdog_s=60, seed=seed, threads=threads))
        keys.append(np.frombuffer(direct_read(engine.target), np.uint64)[:: BLOCK // 8])
    assert len(np.unique(keys[0])) == 2048
    assert (keys[0] == keys[1]).all()
    assert not (keys[0] == keys[2]).any()


def test_the_longest_transfer(engine: Engine) -> None:
    os.truncate(engine.target, LONGEST_TRANSFER_BYTES)
    engine.target_bytes = LONGEST_TRANSFER_BYTES
    ran = engine.run_rows(
        {"operation": "write", "length_bytes": LONGEST_TRANSFER_BYTES},
        {"operation": "read", "length_bytes": LONGEST_TRANSFER_BYTES, "after": 1},
    )
    assert ran.results["result"].tolist() == [LONGEST_TRANSFER_BYTES] * 2
    assert bytes(4096) not in direct_read(engine.target)


def stalled_ns(process: subprocess.Popen[str]) -> int:
    """Wait for the end of a process, and return how long it waited for a CPU; 0 if the kernel does not count that."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        return int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1])
    except FileNotFoundError:
        return 0


def check_rules(engine: Engine, records: Records, options: EngineOptions = QUICK) -> None:
    """Run and check the results against the rules, with tolerance for the time that the engine waited for a CPU.

    The kernel counts it for the first thread. Retry, because other stalls cannot be counted, such as those of a virtual
    machine.
    """
    for _ in range(MOST_TRIES):
        process = engine.start(records, options)
        tolerance_ns = (TOLERANCE_NS + stalled_ns(process)) * options.threads
        ran = engine.ended(process)
        assert ran.report["state"] == "finished"
        assert (ran.results["state"] == COMPLETED).all()
        assert ran.report["most_in_flight"] == ran.results["in_flight"].max(initial=0)
        rules = Rules(options.depth_limit, threads=options.threads)
        assert violations(ran.schedule, ran.results, replace(rules, tolerance_ns=1 << 62)) == []
        errors = violations(ran.schedule, ran.results, replace(rules, tolerance_ns=tolerance_ns))
        if not errors:
            return
    raise AssertionError("\n".join(errors))


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


# No shrinking: each attempt takes several replays in real time.
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)  # fmt: skip
@given(schedules(), st.sampled_from([1, 2, 32]), st.sampled_from([1, 2, 3]))
def test_a_replay_follows_the_rules_of_a_schedule(engine: Engine, records: Records, depth: int, threads: int) -> None:
    check_rules(engine, records, EngineOptions(watchdog_s=60, depth_limit=depth, threads=threads))


def test_chains_as_soon_as_possible(engine: Engine) -> None:
    """More requests wait than the engine can park: 64 chains, in which each request waits for the one before."""
    count = 600_000
    records = np.zeros(count, SCHEDULE_RECORD)
    records["operation"], records["depth"] = OPERATION_CODES["read"], 128
    records["length_bytes"], records["offset_bytes"] = BLOCK, np.arange(count) % 64 * BLOCK
    records["after"][64:] = np.arange(1, count - 63)
    ran = engine.run(records)
    assert ran.report["completed"] == count
    assert ran.report["most_in_flight"] <= 64
    awaited = ran.results["complete_ns"][records["after"][64:] - 1]
    assert (ran.results["issue_ns"][64:] >= awaited).all()
    assert (ran.results["waited"][64:] == 2).all()


def test_requests_whose_dependencies_are_complete_keep_the_order_of_the_file(engine: Engine) -> None:
    """They are not read far ahead and sorted by the ends of their dependencies."""
    count = 400
    rows = [{"after": 0 if index < 4 else index - 3 if index % 2 else index, "depth": 1} for index in range(count)]
    ran = engine.run(make_records(rows), EngineOptions(watchdog_s=60, threads=1))
    assert ran.report["state"] == "finished"
    assert (np.diff(ran.results["issue_ns"].astype(np.int64)) > 0).all()


@pytest.mark.long
def test_memory_is_bounded(engine: Engine) -> None:
    """Schedule and results are 64 MB, but only a small part is resident at any time."""
    records = np.zeros(1_000_000, SCHEDULE_RECORD)
    records["operation"], records["depth"], records["length_bytes"] = OPERATION_CODES["write"], 32, BLOCK
    process = engine.start(records)
    peaks_kib = [0]

    def nearly_done() -> bool:
        status = Path(f"/proc/{process.pid}/status").read_text()
        peaks_kib.append(int(status.partition("VmHWM:")[2].split()[0]) if "VmHWM:" in status else 0)
        return bool(engine.live_header()["completed"] > 900_000)

    wait_until(nearly_done, process)
    assert engine.ended(process).report["completed"] == 1_000_000
    assert 16_000 < max(peaks_kib) < 48_000


def test_reads_never_share_memory(tmp_path: Path) -> None:
    """Reads of all sizes exceed the registered part, end in any order, and sometimes use all memory."""
    program = tmp_path / "buffers"
    sources = [Path(__file__).with_name("buffers_main.c"), ENGINE_SOURCES / "buffers.c"]
    subprocess.run([*ENGINE_COMPILER, f"-I{ENGINE_SOURCES}", "-o", str(program), *map(str, sources)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    counts = dict(line.split() for line in done.stdout.splitlines())
    assert int(counts["registered"]) > 0
    assert int(counts["unregistered"]) > 0
    assert int(counts["refused"]) > 0
    assert int(counts["reach_at_depth_32_bytes"]) <= 2 * 32 * BLOCK, "small depths do not stay in the CPU cache"


@pytest.mark.parametrize("length_bytes", [BLOCK, MIB])
def test_memory_of_reads_matches_the_data_in_flight(engine: Engine, length_bytes: int) -> None:
    records = np.zeros(20_000 if length_bytes == BLOCK else 3000, SCHEDULE_RECORD)
    records["operation"], records["depth"], records["length_bytes"] = OPERATION_CODES["read"], 16, length_bytes
    records[-1]["deadline_ns"] = 3600 * 10**9
    process = engine.start(records)
    wait_until(lambda: engine.live_header()["completed"] == len(records) - 1, process)
    peak_kib = int(Path(f"/proc/{process.pid}/status").read_text().partition("VmHWM:")[2].split()[0])
    process.terminate()
    assert engine.ended(process).report["completed"] == len(records) - 1
    assert 4_000 < peak_kib < 16_000 + 16 * length_bytes // 1024


@pytest.mark.skipif(not programs.has(programs.SYS_NICE), reason="real-time priority needs CAP_SYS_NICE")
def test_the_priority_is_not_inherited(engine: Engine) -> None:
    process = engine.start(endless(), EngineOptions(watchdog_s=60, realtime_priority=10))
    raised = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK  # after the ring, which may start a worker, has been set up
    threads: dict[int, int] = {}

    def has_worker() -> bool:
        threads.clear()
        threads.update(policies(process.pid))
        return len(threads) > 1 and threads[process.pid] == raised

    wait_until(has_worker, process)
    process.terminate()
    assert engine.ended(process).report["failed"] == 0
    assert threads.pop(process.pid) == raised
    assert set(threads.values()) == {os.SCHED_OTHER}


def policies(pid: int) -> dict[int, int]:
    """Return the scheduling policy of each thread of a process, including the kernel's workers."""
    threads = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # an idle worker that has ended
            threads[int(task.name)] = os.sched_getscheduler(int(task.name))
    return threads


def test_the_think_time_is_kept(engine: Engine) -> None:
    ran = engine.run_rows({}, {"after": 1, "think_ns": 600 * MS}, {"after": 1, "think_ns": 150 * MS}, {})
    issue, complete = ran.results["issue_ns"].astype(np.int64), ran.results["complete_ns"].astype(np.int64)
    assert issue[1] >= complete[0] + 600 * MS
    assert complete[0] + 150 * MS <= issue[2] <= issue[1], "equal if the engine waited for a CPU"
    assert issue[3] <= issue[2]
    assert ran.results["waited"].tolist() == [0, 2, 2, 0]


def test_as_soon_as_possible_fills_the_depth(engine: Engine) -> None:
    records = make_records({"offset_bytes": i % 512 * BLOCK, "depth": 8} for i in range(5000))
    ran = engine.run(records)
    assert ran.report["most_in_flight"] == 8
    assert (ran.results["in_flight"][8:] > 4).mean() >= 0.5  # 1 to 8 again and again, if all complete together
    assert ran.results["waited"].tolist() == [0] * 8 + [1] * 4992


def test_a_burst_goes_at_once(engine: Engine) -> None:
    """32 requests due at one time are submitted together, with one issue time unless the host stalls."""
    records = make_records({"deadline_ns": i // 32 * 5 * MS} for i in range(320))
    ran = engine.run(records)
    spread = ran.results["issue_ns"].reshape(10, 32)
    assert sorted(ran.results["in_flight"].reshape(10, 32)[0]) == list(range(1, 33))
    assert ((spread.max(axis=1) - spread.min(axis=1)) == 0).sum() >= 5


def test_the_runtime_ends_the_replay(engine: Engine) -> None:
    ran = engine.run(endless(), EngineOptions(watchdog_s=60, runtime_s=1.0))
    assert (ran.status, ran.report["state"]) == (0, "time is up")
    assert 0 < ran.report["issued"] <= 1000
    assert ran.report["issued"] == ran.report["completed"] == (ran.results["state"] == COMPLETED).sum()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_engine_cleanly(engine: Engine, number: signal.Signals) -> None:
    process = engine.start(endless())
    wait_until(lambda: engine.live_header()["completed"] > 20, process)
    process.send_signal(number)
    ran = engine.ended(process)
    assert (ran.status, ran.report["state"], ran.report["signal"]) == (0, "interrupted", number)
    assert ran.report["issued"] == ran.report["completed"] == (ran.results["state"] == COMPLETED).sum() > 20


def test_completed_results_survive_a_kill(engine: Engine) -> None:
    process = engine.start(endless())
    wait_until(lambda: engine.live_header()["completed"] > 20, process)
    process.kill()
    ran = engine.ended(process)
    assert (ran.status, ran.report["state"]) == (-signal.SIGKILL, "running")
    done = ran.results[ran.results["state"] == COMPLETED]
    assert len(done) > 20
    assert (done["result"] == BLOCK).all()
    assert abs(len(done) - ran.report["completed"]) <= 32
    assert not ran.results[ran.results["state"] == NOT_ISSUED]["complete_ns"].any()


def test_the_heartbeat_continues_while_nothing_is_due(engine: Engine) -> None:
    process = engine.start(make_records([{}, {"deadline_ns": 3600 * 10**9}]))
    wait_until(lambda: engine.live_header()["heartbeat_ns"] > 10**9, process)
    process.terminate()
    ran = engine.ended(process)
    assert (ran.report["state"], ran.report["completed"]) == ("interrupted", 1)


def test_a_short_read_is_a_failure(engine: Engine) -> None:
    """The file shrinks after the engine has opened it."""
    records = make_records([{}, *({"offset_bytes": 4 * MIB, "deadline_ns": 1000 * MS + i} for i in range(2)),
                         {"deadline_ns": 1050 * MS}])  # fmt: skip
    for go_on in (False, True):
        ran = run_and_shrink(engine, records, EngineOptions(watchdog_s=60, go_on=go_on), 1000 * MS)
        assert (ran.status, ran.report["state"]) == (0, "finished" if go_on else "failed")
        assert ran.report["first_failed"] == 1
        assert ran.results["result"].tolist() == [BLOCK, 0, 0, BLOCK if go_on else 0]
        assert ran.results["state"][3] == (COMPLETED if go_on else NOT_ISSUED)


def run_and_shrink(engine: Engine, records: Records, options: EngineOptions, due_ns: int) -> Ran:
    """Halve the target after the first request and before the next is due; retry if this process was too slow."""
    for _ in range(MOST_TRIES):
        os.truncate(engine.target, 8 * MIB)
        process = engine.start(records, options)
        wait_until(lambda: engine.live_header()["completed"] > 0, process)
        os.truncate(engine.target, 4 * MIB)
        passed_ns = time.monotonic_ns() - engine.live_header()["start_monotonic_ns"]
        ran = engine.ended(process)
        if passed_ns < due_ns:
            return ran
    raise AssertionError("the target never shrank in time")


def test_an_empty_schedule_finishes(engine: Engine) -> None:
    ran = engine.run(make_records([]))
    assert (ran.status, ran.report["state"], ran.report["issued"]) == (0, "finished", 0)


def test_the_cpu_follows_the_options(engine: Engine) -> None:
    ran = engine.run_rows({}, options=EngineOptions(watchdog_s=60, cpus=(0,)))
    assert ran.report["state"] == "finished"
    refused = engine.run_rows({}, options=EngineOptions(watchdog_s=60, cpus=(0,)), cpus="1023")
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
    assert "but 'file" in ran.words
    assert "nothing was written" in ran.words
    assert direct_read(engine.target) == b"\xaa" * 8 * MIB
    assert (ran.report["state"], ran.report["issued"]) == ("prepared", 0)


@pytest.mark.parametrize("kind", ["pipe", "folder", "terminal", "nothing", "too small"])
def test_other_kinds_of_file_are_refused(engine: Engine, tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    reason = str(path)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "terminal":
        path, reason = Path("/dev/null"), "/dev/null"
    elif kind == "too small":
        path, reason = Path(engine.target), f"has {8 * MIB - BLOCK} bytes, the schedule is for {8 * MIB}"
    line = engine.prepare(write(), QUICK, target=str(path))
    os.truncate(engine.target, 8 * MIB - BLOCK)
    ran = engine.ended(start(line))
    assert ran.status == 4
    assert reason in ran.words
    assert direct_read(engine.target) == b"\xaa" * (8 * MIB - BLOCK)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda data: data[:-1], "truncated or damaged"),
        (lambda data: data[:-40], "truncated or damaged"),
        (lambda data: data[:20], "is not a schedule"),
        (lambda data: b"", "is not a schedule"),
        (lambda data: b"X" + data[1:], "is not a schedule"),
        (lambda data: data[:56] + bytes([data[56] ^ 128]) + data[57:], "block boundaries"),
        (lambda data: data[:57] + bytes([data[57] ^ 16]) + data[58:], "checksum is wrong"),
    ],
)
def test_a_damaged_schedule_is_refused(engine: Engine, damage: Callable[[bytes], bytes], reason: str) -> None:
    line = engine.prepare(write(), QUICK)
    path = Path(line[line.index("--schedule") + 1])
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    process = start(line)
    _, message = process.communicate()
    assert process.returncode == 3
    assert message.startswith(f"drivelab-replay: {path}: ")
    assert len(message.splitlines()) == 1
    assert reason in message
    assert direct_read(engine.target) == b"\xaa" * 8 * MIB


def test_results_of_another_schedule_and_used_results_are_refused(engine: Engine, tmp_path: Path) -> None:
    line = engine.prepare(write(), QUICK)
    other = [*line]
    other[line.index("--schedule") + 1] = str(write_schedule(tmp_path / "s.schedule", make_records([{}]), MIB))
    for command, status, reason in ((other, 6, "another schedule"), (line, 0, ""), (line, 6, "already used")):
        process = start(command)
        _, message = process.communicate()
        assert process.returncode == status
        assert reason in message


@pytest.mark.parametrize("arguments", ["--depth 0", "--depth 4097", "--watchdog-s nan", "--what", "x"])
def test_a_wrong_command_line_is_refused(engine: Engine, arguments: str) -> None:
    process = start([*engine.prepare(write(), QUICK), *arguments.split()])
    _, message = process.communicate()
    assert process.returncode == 2
    assert len(message.splitlines()) == 1


def test_nvme_commands_and_polling_need_an_approved_device_for_it(engine: Engine, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a whole NVMe namespace"):
        engine.run(write(), EngineOptions(nvme=True))
    ran = engine.ended(start([*engine.prepare(write(), QUICK), "--nvme", "/dev/null"]))
    assert ran.status == 4
    assert ran.words.endswith(
        "/dev/null: is not the NVMe character device of the approved target; nothing was written\n"
    )
    assert direct_read(engine.target, 0, BLOCK) == b"\xaa" * BLOCK
    schedule = write_schedule(tmp_path / "s.schedule", write(), 8 * MIB)
    with pytest.raises(UserError, match="cannot be polled: its driver has no queues for that"):
        native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, EngineOptions(polled=True))


def without_locked_memory(command: list[str], memlock_kib: int) -> list[str]:
    """Return a command with a limit of locked memory and without CAP_IPC_LOCK, which would lift the limit."""
    no_capability = ["setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"] if os.geteuid() == 0 else []
    return ["prlimit", f"--memlock={memlock_kib << 10}:{memlock_kib << 10}", *no_capability, *command]


LITTLE_KIB = 2048
"""Enough to lock the ring, but not the data areas."""


def test_a_ring_that_gets_no_memory_is_refused(engine: Engine) -> None:
    ran = engine.ended(start(without_locked_memory(engine.prepare(write(), QUICK), memlock_kib=0)))
    assert ran.status == 5
    assert "(ulimit -l)" in ran.words


def test_buffers_are_plain_with_too_little_lockable_memory(engine: Engine) -> None:
    records = make_records({"operation": ("write", "read")[i % 2], "offset_bytes": i // 2 * BLOCK, "depth": 1}
                        for i in range(200))  # fmt: skip
    ran = engine.ended(start(without_locked_memory(engine.prepare(records, QUICK), LITTLE_KIB)))
    assert (ran.status, ran.words) == (0, "")
    assert (ran.report["state"], ran.report["completed"], ran.report["buffers"]) == ("finished", 200, "plain")
    content = direct_read(engine.target, 0, 100 * BLOCK)
    assert len({content[at : at + BLOCK] for at in range(0, len(content), BLOCK)}) == 100


def test_plain_and_registered_buffers_write_the_same_data(engine: Engine) -> None:
    """32 MiB are in flight, more than the data areas hold."""
    os.truncate(engine.target, 48 * MIB)
    engine.target_bytes = 48 * MIB
    records = make_records(
        {"operation": "write", "offset_bytes": i * 4 * MIB, "length_bytes": 4 * MIB} for i in range(8)
    )
    contents = []
    for limited in (False, True):
        command = engine.prepare(records, EngineOptions(watchdog_s=60, seed=7))
        ran = engine.ended(start(without_locked_memory(command, LITTLE_KIB) if limited else command))
        assert ran.status == 0, ran.words
        contents.append(direct_read(engine.target))
    assert contents[0] == contents[1]


def test_run_engine_leaves_the_evidence(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", endless(3000), 8 * MIB)
    directory = tmp_path / "cell"
    ticks: list[float] = []
    directory.mkdir()
    timing = native.run_engine(
        engine.target, identity(engine.target), schedule, directory, QUICK, on_tick=ticks.append
    )  # fmt: skip
    assert ticks
    report = native.engine_report(directory)
    assert (report["state"], report["completed"], report["first_failed"]) == ("finished", 3000, None)
    assert timing.started_s < report["start_monotonic_ns"] / 1e9 < timing.ended_s - 2.99
    assert {path.name for path in directory.iterdir()} == {
        "results.bin",
        "command.json",
        "stdout",
        "stderr",
        "exit_code",
    }


def test_run_engine_reports_the_refusal(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", write(), 16 * MIB)
    with pytest.raises(CellFailed, match="the target has 8388608 bytes"):
        native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, QUICK)


def has_begun(directory: Path) -> bool:
    """Return whether the engine whose results are in a folder has completed a request."""
    return bool(open_results(directory / native.RESULTS).header["completed"])


def test_run_engine_returns_when_the_engine_is_killed(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", endless(), 8 * MIB)

    def kill(elapsed_s: float) -> None:
        if has_begun(tmp_path):
            (pid,) = engines_of(schedule)
            os.kill(pid, signal.SIGKILL)

    native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, QUICK, on_tick=kill)
    assert (tmp_path / "exit_code").read_text() == "-9\n"
    report = native.engine_report(tmp_path)
    assert report["state"] == "running"
    assert report["completed"] > 0


def test_an_exception_in_a_tick_ends_the_engine(engine: Engine, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "s.schedule", endless(), 8 * MIB)

    def give_up(elapsed_s: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, QUICK, on_tick=give_up)
    assert not engines_of(schedule)


def test_a_stopped_engine_is_ended(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "GRACE_S", 0.5)
    schedule = write_schedule(tmp_path / "s.schedule", endless(), 8 * MIB)

    def stop(elapsed_s: float) -> None:
        for pid in engines_of(schedule) if has_begun(tmp_path) else ():
            os.kill(pid, signal.SIGSTOP)

    options = EngineOptions(watchdog_s=2)
    native.run_engine(engine.target, identity(engine.target), schedule, tmp_path, options, on_tick=stop)
    assert native.engine_report(tmp_path)["state"] == "running"
    assert not engines_of(schedule)
