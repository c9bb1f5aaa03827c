"""Replays on the virtual clock: times computed by hand, and rules checked by an independent checker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from made_traces import Row, made_up
from prepared_replays import prepare_rows
from replay_files import make_records, write_schedule
from replay_semantics import Rules, violations

from drivelab.core.errors import UserError
from drivelab.plan.replay_choice import ReplayChoice, TimingChoice
from drivelab.replay.engine_records import (
    FINISHED,
    FUA,
    SCHEDULE_HEADER,
    TIME_IS_UP,
    Mapped,
    Records,
    open_results,
    open_schedule,
)
from drivelab.replay.evaluation.replay_report import report
from drivelab.replay.outcome import write_outcome
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel
from drivelab.virtual_clock.replaying import replay_schedule

MakeModel = Callable[..., DriveModel]
CAPACITY = 4 << 20


class Constant(FlashDrive):
    """A drive with a constant latency for each offset, regardless of load; it records its requests."""

    def __init__(self, model: DriveModel, latency_us: Callable[[int], float] = lambda offset: 100.0) -> None:
        super().__init__(model)
        self._latency_us = latency_us
        self.requests: list[tuple[float, str, int, int]] = []

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        super().submit(now_us, operation, offset, length)
        self.requests.append((now_us, operation, offset, length))
        return now_us + self._latency_us(offset)


@pytest.fixture
def constant(small: MakeModel) -> Constant:
    return Constant(small(enabled=False))


def record(deadline_us: float = 0, **fields: Any) -> dict[str, Any]:
    """Make a record, by default a read of one page."""
    return {"deadline_ns": round(1000 * deadline_us), **fields}


def replay(drive: FlashDrive, rows: list[dict[str, Any]], folder: Path, start_us: float = 0.0, **limits: Any) -> Mapped:
    """Replay a schedule, check the rules, and return the results."""
    schedule = write_schedule(folder / "schedule", make_records(rows), CAPACITY)
    replay_schedule(drive, schedule, folder / "results.bin", start_us, **limits)
    replayed = open_results(folder / "results.bin")
    runtime_s = limits.get("runtime_s")
    rules = Rules(limits.get("depth_limit", 4096), None if runtime_s is None else round(1e9 * runtime_s), lateness_ns=0)
    assert violations(open_schedule(schedule).records, replayed.records, rules) == []
    return replayed


def microseconds(results: Records, column: str = "issue_ns") -> list[float]:
    return [value / 1000 for value in results[column].tolist()]


def test_every_request_is_issued_at_its_deadline(constant: Constant, tmp_path: Path) -> None:
    replayed = replay(constant, [record(0), record(30), record(30), record(500)], tmp_path, start_us=7e9)
    assert microseconds(replayed.records) == [0, 30, 30, 500]
    assert microseconds(replayed.records, "complete_ns") == [100, 130, 130, 600]
    assert replayed.records["in_flight"].tolist() == [1, 2, 3, 1]
    assert replayed.records["waited"].tolist() == [0, 0, 0, 0]
    assert replayed.records["result"].tolist() == [PAGE_BYTES] * 4
    assert [now_us for now_us, *_ in constant.requests] == [7e9, 7e9 + 30, 7e9 + 30, 7e9 + 500]


def test_the_header_has_the_totals(constant: Constant, tmp_path: Path) -> None:
    header = replay(constant, [record(0), record(30)], tmp_path, start_us=2e6).header
    assert (header["issued"], header["completed"], header["failed"], header["first_failed"]) == (2, 2, 0, 0)
    assert (header["state"], header["most_in_flight"], header["end_ns"]) == (FINISHED, 2, 130_000)
    assert header["start_realtime_ns"] == 946_684_802 * 10**9  # 2000-01-01 00:00:02 UTC
    assert header["wakeup_max_ns"] == 0
    assert header["schedule_checksum"] == open_schedule(tmp_path / "schedule").header["checksum"]


@pytest.mark.parametrize(
    ("rows", "limits", "issued_us", "waited"),
    [
        ([record(0), record(10), record(20), record(110), record(300)], {"depth_limit": 2},
         [0, 10, 100, 110, 300], [0, 0, 1, 0, 0]),
        ([record(0), record(0), record(10), record(20)], {"depth_limit": 2}, [0, 0, 100, 100], [0, 0, 1, 1]),
        ([record(), record(depth=1), record(depth=3), record(depth=3), record(depth=3)], {},
         [0, 100, 100, 100, 200], [0, 1, 1, 1, 1]),
        ([record(depth=9)] * 5, {"depth_limit": 2}, [0, 0, 100, 100, 200], [0, 0, 1, 1, 1]),
        ([record(0), record(0, after=1), record(0, after=2, think_ns=50_000), record(500, after=3)], {},
         [0, 100, 250, 500], [0, 2, 2, 0]),
        ([record(0), record(190)], {"runtime_s": 1.0}, [0, 190], [0, 0]),
    ],
    ids=["later requests are delayed", "also those behind a blocked one", "a request's own depth",
         "the engine's depth limits it", "a chain of dependencies", "a longer runtime has no effect"],
)  # fmt: skip
def test_requests_wait_for_a_free_place_or_for_others(
    constant: Constant, tmp_path: Path, rows: list[dict[str, Any]], limits: dict[str, Any], issued_us: list[float],
    waited: list[int],
) -> None:  # fmt: skip
    replayed = replay(constant, rows, tmp_path, **limits)
    assert microseconds(replayed.records) == issued_us
    assert replayed.records["waited"].tolist() == waited
    assert replayed.header["state"] == FINISHED


def test_a_dependent_request_does_not_delay_others(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0), record(10, after=1, think_ns=5000), record(20), record(104), record(105), record(105)]
    replayed = replay(constant, rows, tmp_path)
    assert microseconds(replayed.records) == [0, 105, 20, 104, 105, 105]
    assert replayed.records["waited"].tolist() == [0, 2, 0, 0, 0, 0]
    assert [now_us for now_us, *_ in constant.requests] == [0, 20, 104, 105, 105, 105]


def test_requests_due_together_keep_file_order(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0, after=0), record(1, after=1, offset_bytes=4096), record(100, offset_bytes=8192)]
    replay(constant, rows, tmp_path)
    assert [offset for _, _, offset, _ in constant.requests] == [0, 4096, 8192]


def test_several_requests_wait_for_one(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0), *[record(index, after=1, offset_bytes=4096 * index) for index in range(1, 5)]]
    assert microseconds(replay(constant, rows, tmp_path, depth_limit=3).records) == [0, 100, 100, 100, 200]
    assert [offset // 4096 for _, _, offset, _ in constant.requests] == [0, 1, 2, 3, 4]


def test_requests_in_flight_complete_after_the_runtime(constant: Constant, tmp_path: Path) -> None:
    replayed = replay(constant, [record(0), record(190), record(200)], tmp_path, runtime_s=200e-6)
    assert (replayed.header["state"], replayed.header["issued"], replayed.header["end_ns"]) == (TIME_IS_UP, 2, 290_000)
    assert replayed.records["state"].tolist() == [2, 2, 0]
    assert replayed.records[2].item() == (0, 0, 0, 0, 0, 0)


def test_the_runtime_ends_waiting_at_the_depth_limit(constant: Constant, tmp_path: Path) -> None:
    replayed = replay(constant, [record()] * 9, tmp_path, depth_limit=1, runtime_s=350e-6)
    assert (replayed.header["issued"], replayed.header["state"]) == (4, TIME_IS_UP)


def test_every_kind_of_request_reaches_the_model(constant: Constant, tmp_path: Path) -> None:
    rows = [
        record(0, operation="write", flags=FUA),
        record(1, operation="flush", length_bytes=0),
        record(2, operation="discard", offset_bytes=4096, length_bytes=8192),
        record(3, operation="write-zeroes", offset_bytes=8192),
        record(4, operation="read"),
    ]
    replayed = replay(constant, rows, tmp_path)
    assert constant.requests == [
        (0, "write", 0, 4096), (1, "flush", 0, 0), (2, "trim", 4096, 8192), (3, "write", 8192, 4096),
        (4, "read", 0, 4096),
    ]  # fmt: skip
    assert replayed.records["result"].tolist() == [4096, 0, 0, 0, 4096]


def test_without_timing_requests_complete_at_once(small: MakeModel, tmp_path: Path) -> None:
    rows = [record(10 * index, operation="write", depth=1) for index in range(20)]
    replayed = replay(FlashDrive(small(enabled=False)), rows, tmp_path, depth_limit=1)
    assert (
        microseconds(replayed.records) == microseconds(replayed.records, "complete_ns") == [10.0 * i for i in range(20)]
    )
    assert replayed.header["most_in_flight"] == 1


def test_completion_times_are_those_of_the_model(small: MakeModel, tmp_path: Path) -> None:
    rows = [record(1000 * index, operation="write", offset_bytes=4096 * index) for index in range(50)]
    replayed = replay(FlashDrive(small()), rows, tmp_path, start_us=123456.789)
    other = FlashDrive(small())
    done_us = [other.submit(123456.789 + 1000 * index, "write", 4096 * index, 4096) for index in range(50)]
    assert replayed.records["complete_ns"].tolist() == [round(1000 * (at_us - 123456.789)) for at_us in done_us]


def test_a_schedule_for_a_larger_drive_is_refused(constant: Constant, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "schedule", make_records([record()]), 8 << 20)
    with pytest.raises(UserError, match="for a target of 8MiB, but the virtual drive has 4MiB"):
        replay_schedule(constant, schedule, tmp_path / "results.bin", 0.0)


@pytest.mark.parametrize(
    "row",
    [
        record(0),  # follows a record at 5
        record(5, operation=5),
        record(5, after=2),
        record(5, length_bytes=0),
        record(5, offset_bytes=CAPACITY),
        record(5, offset_bytes=2**64 - 4096, length_bytes=8192),
    ],
)
def test_impossible_requests_are_refused_before_any_issue(
    row: dict[str, Any], constant: Constant, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="damaged"):
        replay(constant, [record(5), row], tmp_path)
    assert constant.requests == []
    assert not (tmp_path / "results.bin").exists()


def test_an_altered_schedule_is_refused(constant: Constant, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "schedule", make_records([record(), record()]), CAPACITY)
    content = bytearray(schedule.read_bytes())
    content[SCHEDULE_HEADER.itemsize + 8] ^= 64
    schedule.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        replay_schedule(constant, schedule, tmp_path / "results.bin", 0.0)


def test_an_empty_schedule_is_refused(constant: Constant, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="empty"):
        replay_schedule(
            constant, write_schedule(tmp_path / "schedule", make_records([]), CAPACITY), tmp_path / "results.bin", 0.0
        )


@pytest.mark.parametrize("depth_limit", [0, 4097])
def test_invalid_limits_are_refused(depth_limit: int, constant: Constant, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "schedule", make_records([record()]), CAPACITY)
    with pytest.raises(ValueError, match="in flight"):
        replay_schedule(constant, schedule, tmp_path / "r", 0.0, depth_limit=depth_limit)


@st.composite
def schedules(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Generate schedules with few distinct times, so that requests are due together."""
    count = draw(st.integers(1, 40))
    deadlines = sorted(draw(st.lists(st.integers(0, 12), min_size=count, max_size=count)))
    asap = draw(st.booleans())
    rows = []
    for index, deadline in enumerate(deadlines):
        after = draw(st.integers(0, index)) if draw(st.booleans()) else 0
        rows.append(
            record(
                0 if asap else 50 * deadline,
                after=after,
                think_ns=draw(st.sampled_from([0, 0, 10_000, 50_000])) if after else 0,
                depth=draw(st.integers(1, 4)) if asap else draw(st.sampled_from([0, 0, 0, 1, 3])),
                offset_bytes=PAGE_BYTES * draw(st.integers(0, 9)),
                operation=draw(st.sampled_from(["read", "write", "discard", "write-zeroes"])),
            )
        )
    return rows


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=schedules(),
    depth_limit=st.sampled_from([1, 2, 5, 4096]),
    runtime_us=st.none() | st.integers(1, 900),
    latencies_us=st.lists(st.sampled_from([0, 10, 50, 150]), min_size=10, max_size=10),
)
def test_results_follow_the_rules(
    rows: list[dict[str, Any]],
    depth_limit: int,
    runtime_us: int | None,
    latencies_us: list[int],
    small: MakeModel,
    tmp_path: Path,
) -> None:
    drive = Constant(small(enabled=False), lambda offset: latencies_us[offset // PAGE_BYTES])
    limits = {"depth_limit": depth_limit, "runtime_s": None if runtime_us is None else runtime_us / 1e6}
    replayed = replay(drive, rows, tmp_path, **limits)
    issued = int((replayed.records["state"] == 2).sum())
    assert replayed.header["issued"] == issued == len(drive.requests)
    assert (issued == len(rows)) is (replayed.header["state"] == FINISHED)
    assert runtime_us is not None or replayed.header["state"] == FINISHED
    assert replayed.header["end_ns"] == replayed.records["complete_ns"].max()
    assert replayed.header["most_in_flight"] == replayed.records["in_flight"].max()
    times = [now_us for now_us, *_ in drive.requests]
    assert times == sorted(times)


def test_a_burst_waits_for_the_burst_before_it_in_any_order_of_completion(constant: Constant, tmp_path: Path) -> None:
    """In the trace, four requests end in the order of their offsets; this drive reverses the order."""
    burst = [Row(index, None, 50 + index, "read", index * PAGE_BYTES, PAGE_BYTES) for index in range(4)]
    choice = ReplayChoice(TimingChoice("scaled", factor=0.5), dependencies="trace")
    prepared = prepare_rows(
        tmp_path, [row.later(100 * turn) for turn in range(2) for row in burst], choice, capacity_bytes=CAPACITY
    )
    drive = Constant(constant.model, lambda offset: 40.0 - offset / PAGE_BYTES)
    replay_schedule(drive, prepared.schedule, tmp_path / "results.bin", 0.0)
    results = open_results(tmp_path / "results.bin").records
    assert results["issue_ns"][4] == results["complete_ns"][:4].max()
    assert results["in_flight"].max() == 4


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(made_up(most=40), st.sampled_from(["none", "trace"]))
def test_overlaps_in_the_trace_and_in_the_replay_are_counted(
    constant: Constant, tmp_path: Path, rows: list[Row], dependencies: str
) -> None:
    """As soon as possible at a high depth; the trace has many overlaps."""
    if not any(row.operation in ("read", "write") for row in rows) or all(row.complete_ns is None for row in rows):
        return
    choice = ReplayChoice(TimingChoice("asap", depth=32), dependencies=dependencies)
    prepared = prepare_rows(tmp_path, rows, choice, capacity_bytes=CAPACITY)
    drive = Constant(constant.model, lambda offset: 10.0 + offset / 512 % 7)
    replay_schedule(drive, prepared.schedule, tmp_path / "results.bin", 0.0)
    schedule, results = open_schedule(prepared.schedule), open_results(tmp_path / "results.bin")
    assert violations(schedule.records, results.records, Rules(4096, lateness_ns=0)) == []
    write_outcome(prepared.planned, tmp_path / "results.bin", tmp_path / "outcome.parquet", {"engine": "native"})
    overlaps = report(tmp_path / "outcome.parquet", prepared.to_mapping(), "native")["overlaps"]
    assert overlaps["trace"] == prepared.overlapping
    if dependencies == "none" and overlaps["trace"] and len(rows) <= 32:
        assert overlaps["replay"] >= overlaps["trace"]
