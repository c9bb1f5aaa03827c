"""Replays on the virtual clock: times computed by hand, and the rules of a schedule by an independent checker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_semantics import Rules, violations

from drivelab.errors import UserError
from drivelab.replay.records import (
    FINISHED,
    FUA,
    OPERATION_CODES,
    SCHEDULE_HEADER,
    SCHEDULE_RECORD,
    TIME_IS_UP,
    Mapped,
    Records,
    ScheduleWriter,
    open_results,
    open_schedule,
)
from drivelab.virtual.ftl import FlashDrive
from drivelab.virtual.model import PAGE_BYTES, DriveModel
from drivelab.virtual.replaying import replay_schedule

MakeModel = Callable[..., DriveModel]
CAPACITY = 4 << 20


class Constant(FlashDrive):
    """Every request takes so many microseconds, however many there are; notes what it was asked for."""

    def __init__(self, model: DriveModel, latency_us: Callable[[int], float] = lambda offset: 100.0) -> None:
        super().__init__(model)
        self._latency_us = latency_us
        self.seen: list[tuple[float, str, int, int]] = []

    def submit(self, now_us: float, operation: str, offset: int, length: int) -> float:
        super().submit(now_us, operation, offset, length)
        self.seen.append((now_us, operation, offset, length))
        return now_us + self._latency_us(offset)


@pytest.fixture
def constant(small: MakeModel) -> Constant:
    return Constant(small(enabled=False))


def record(deadline_us: float = 0, **fields: Any) -> dict[str, Any]:
    """A read of a page unless said otherwise."""
    return {"deadline_ns": round(1000 * deadline_us), "length_bytes": PAGE_BYTES, **fields}


def write_schedule(path: Path, rows: list[dict[str, Any]], target_bytes: int = CAPACITY) -> Path:
    records = np.zeros(len(rows), SCHEDULE_RECORD)
    for index, row in enumerate(rows):
        for name, value in row.items():
            records[index][name] = OPERATION_CODES.get(value, value)
    with ScheduleWriter(path, target_bytes, PAGE_BYTES) as writer:
        writer.write(records)
    return path


def replay(drive: FlashDrive, rows: list[dict[str, Any]], folder: Path, start_us: float = 0.0, **limits: Any) -> Mapped:
    """The results, which keep the rules."""
    schedule = write_schedule(folder / "schedule", rows)
    replay_schedule(drive, schedule, folder / "results.bin", start_us, **limits)
    found = open_results(folder / "results.bin")
    runtime_s = limits.get("runtime_s")
    rules = Rules(limits.get("depth_limit", 4096), None if runtime_s is None else round(1e9 * runtime_s), lateness_ns=0)
    assert violations(open_schedule(schedule).records, found.records, rules) == []
    return found


def microseconds(results: Records, column: str = "issue_ns") -> list[float]:
    return [value / 1000 for value in results[column].tolist()]


def test_every_request_goes_at_its_deadline(constant: Constant, tmp_path: Path) -> None:
    found = replay(constant, [record(0), record(30), record(30), record(500)], tmp_path, start_us=7e9)
    assert microseconds(found.records) == [0, 30, 30, 500]
    assert microseconds(found.records, "complete_ns") == [100, 130, 130, 600]
    assert found.records["in_flight"].tolist() == [1, 2, 3, 1]
    assert found.records["waited"].tolist() == [0, 0, 0, 0]
    assert found.records["result"].tolist() == [PAGE_BYTES] * 4
    assert [now_us for now_us, *_ in constant.seen] == [7e9, 7e9 + 30, 7e9 + 30, 7e9 + 500]


def test_the_header_tells_how_it_went(constant: Constant, tmp_path: Path) -> None:
    header = replay(constant, [record(0), record(30)], tmp_path, start_us=2e6).header
    assert (header["issued"], header["completed"], header["failed"], header["first_failed"]) == (2, 2, 0, 0)
    assert (header["state"], header["most_in_flight"], header["end_ns"]) == (FINISHED, 2, 130_000)
    assert header["start_realtime_ns"] == 946_684_802 * 10**9  # 2000-01-01 00:00:02 UTC
    assert header["wakeup_max_ns"] == 0
    assert header["schedule_checksum"] == open_schedule(tmp_path / "schedule").header["checksum"]


def test_a_full_depth_holds_up_those_behind(constant: Constant, tmp_path: Path) -> None:
    found = replay(constant, [record(0), record(10), record(20), record(110), record(300)], tmp_path, depth_limit=2)
    assert microseconds(found.records) == [0, 10, 100, 110, 300]
    assert found.records["waited"].tolist() == [0, 0, 1, 0, 0]


def test_one_held_up_behind_another_has_waited_for_a_place_too(constant: Constant, tmp_path: Path) -> None:
    found = replay(constant, [record(0), record(0), record(10), record(20)], tmp_path, depth_limit=2)
    assert microseconds(found.records) == [0, 0, 100, 100]
    assert found.records["waited"].tolist() == [0, 0, 1, 1]


def test_a_request_has_a_depth_of_its_own(constant: Constant, tmp_path: Path) -> None:
    rows = [record(), record(depth=1), record(depth=3), record(depth=3), record(depth=3)]
    found = replay(constant, rows, tmp_path)
    assert microseconds(found.records) == [0, 100, 100, 100, 200]
    assert found.records["in_flight"].tolist() == [1, 1, 2, 3, 1]


def test_the_engines_depth_bounds_that_of_a_request(constant: Constant, tmp_path: Path) -> None:
    assert microseconds(replay(constant, [record(depth=9)] * 5, tmp_path, depth_limit=2).records) == [
        0, 0, 100, 100, 200,
    ]  # fmt: skip


def test_a_request_waits_for_another_and_holds_up_nobody(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0), record(10, after=1, think_ns=5000), record(20), record(104), record(105), record(105)]
    found = replay(constant, rows, tmp_path)
    assert microseconds(found.records) == [0, 105, 20, 104, 105, 105]
    assert found.records["waited"].tolist() == [0, 2, 0, 0, 0, 0]
    assert [now_us for now_us, *_ in constant.seen] == [0, 20, 104, 105, 105, 105]


def test_of_those_due_at_once_the_first_of_the_file_goes_first(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0, after=0), record(1, after=1, offset_bytes=4096), record(100, offset_bytes=8192)]
    replay(constant, rows, tmp_path)
    assert [offset for _, _, offset, _ in constant.seen] == [0, 4096, 8192]


def test_a_chain_of_dependencies(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0), record(0, after=1), record(0, after=2, think_ns=50_000), record(500, after=3)]
    found = replay(constant, rows, tmp_path)
    assert microseconds(found.records) == [0, 100, 250, 500]
    assert found.records["waited"].tolist() == [0, 2, 2, 0]


def test_several_wait_for_one(constant: Constant, tmp_path: Path) -> None:
    rows = [record(0), *[record(index, after=1, offset_bytes=4096 * index) for index in range(1, 5)]]
    assert microseconds(replay(constant, rows, tmp_path, depth_limit=3).records) == [0, 100, 100, 100, 200]
    assert [offset // 4096 for _, _, offset, _ in constant.seen] == [0, 1, 2, 3, 4]


def test_the_runtime_ends_the_issuing_and_not_what_is_in_flight(constant: Constant, tmp_path: Path) -> None:
    found = replay(constant, [record(0), record(190), record(200)], tmp_path, runtime_s=200e-6)
    assert (found.header["state"], found.header["issued"], found.header["end_ns"]) == (TIME_IS_UP, 2, 290_000)
    assert found.records["state"].tolist() == [2, 2, 0]
    assert found.records[2].item() == (0, 0, 0, 0, 0, 0)


def test_a_runtime_longer_than_the_schedule_ends_nothing(constant: Constant, tmp_path: Path) -> None:
    assert replay(constant, [record(0), record(190)], tmp_path, runtime_s=1.0).header["state"] == FINISHED


def test_waiting_for_a_place_until_the_time_is_up(constant: Constant, tmp_path: Path) -> None:
    found = replay(constant, [record()] * 9, tmp_path, depth_limit=1, runtime_s=350e-6)
    assert (found.header["issued"], found.header["state"]) == (4, TIME_IS_UP)


def test_a_schedule_repeats(constant: Constant, tmp_path: Path) -> None:
    rows = [record(depth=1, offset_bytes=4096 * index) for index in range(3)]
    found = replay(constant, rows, tmp_path, requests=8)
    assert [offset // 4096 for _, _, offset, _ in constant.seen] == [0, 1, 2, 0, 1, 2, 0, 1]
    assert microseconds(found.records) == [100.0 * index for index in range(8)]


def test_fewer_requests_than_the_schedule_has(constant: Constant, tmp_path: Path) -> None:
    found = replay(constant, [record(index) for index in range(9)], tmp_path, requests=4)
    assert (len(found.records), found.header["state"]) == (4, FINISHED)


@pytest.mark.parametrize("fields", [{"deadline_ns": 5}, {"after": 1}])
def test_one_with_deadlines_or_dependencies_does_not(
    fields: dict[str, int], constant: Constant, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="begin anew"):
        replay(constant, [record(), {**record(), **fields}], tmp_path, requests=3)


def test_every_kind_of_request_reaches_the_model(constant: Constant, tmp_path: Path) -> None:
    rows = [
        record(0, operation="write", flags=FUA),
        record(1, operation="flush", length_bytes=0),
        record(2, operation="discard", offset_bytes=4096, length_bytes=8192),
        record(3, operation="write-zeroes", offset_bytes=8192),
        record(4, operation="read"),
    ]
    found = replay(constant, rows, tmp_path)
    assert constant.seen == [
        (0, "write", 0, 4096), (1, "flush", 0, 0), (2, "trim", 4096, 8192), (3, "write", 8192, 4096),
        (4, "read", 0, 4096),
    ]  # fmt: skip
    assert found.records["result"].tolist() == [4096, 0, 0, 0, 4096]


def test_without_timing_all_is_done_at_once(small: MakeModel, tmp_path: Path) -> None:
    rows = [record(10 * index, operation="write", depth=1) for index in range(20)]
    found = replay(FlashDrive(small(enabled=False)), rows, tmp_path, depth_limit=1)
    assert microseconds(found.records) == microseconds(found.records, "complete_ns") == [10.0 * i for i in range(20)]
    assert found.header["most_in_flight"] == 1


def test_the_models_own_times_are_kept(small: MakeModel, tmp_path: Path) -> None:
    rows = [record(1000 * index, operation="write", offset_bytes=4096 * index) for index in range(50)]
    found = replay(FlashDrive(small()), rows, tmp_path, start_us=123456.789)
    other = FlashDrive(small())
    done_us = [other.submit(123456.789 + 1000 * index, "write", 4096 * index, 4096) for index in range(50)]
    assert found.records["complete_ns"].tolist() == [round(1000 * (one - 123456.789)) for one in done_us]


def test_a_schedule_for_a_larger_drive_is_refused(constant: Constant, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "schedule", [record()], target_bytes=8 << 20)
    with pytest.raises(UserError, match="for a target of 8MiB, the virtual drive has 4MiB"):
        replay_schedule(constant, schedule, tmp_path / "results.bin", 0.0)


@pytest.mark.parametrize(
    "row",
    [
        record(0),  # after the one at 5
        record(5, operation=5),
        record(5, after=2),
        record(5, length_bytes=0),
        record(5, offset_bytes=CAPACITY),
        record(5, offset_bytes=2**64 - 4096, length_bytes=8192),
    ],
)
def test_impossible_requests_are_found_before_the_first_is_issued(
    row: dict[str, Any], constant: Constant, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match="damaged"):
        replay(constant, [record(5), row], tmp_path)
    assert constant.seen == []
    assert not (tmp_path / "results.bin").exists()


def test_an_altered_schedule_is_refused(constant: Constant, tmp_path: Path) -> None:
    schedule = write_schedule(tmp_path / "schedule", [record(), record()])
    content = bytearray(schedule.read_bytes())
    content[SCHEDULE_HEADER.itemsize + 8] ^= 64
    schedule.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        replay_schedule(constant, schedule, tmp_path / "results.bin", 0.0)


def test_an_empty_schedule_is_refused(constant: Constant, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="empty"):
        replay_schedule(constant, write_schedule(tmp_path / "schedule", []), tmp_path / "results.bin", 0.0)


@pytest.mark.parametrize("limits", [{"depth_limit": 0}, {"depth_limit": 4097}, {"requests": 0}])
def test_limits_that_are_none(limits: dict[str, int], constant: Constant, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="in flight"):
        replay_schedule(constant, write_schedule(tmp_path / "schedule", [record()]), tmp_path / "r", 0.0, **limits)


@st.composite
def schedules(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Few distinct times, so that requests fall due together."""
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
def test_results_keep_the_rules(
    rows: list[dict[str, Any]],
    depth_limit: int,
    runtime_us: int | None,
    latencies_us: list[int],
    small: MakeModel,
    tmp_path: Path,
) -> None:
    drive = Constant(small(enabled=False), lambda offset: latencies_us[offset // PAGE_BYTES])
    limits = {"depth_limit": depth_limit, "runtime_s": None if runtime_us is None else runtime_us / 1e6}
    found = replay(drive, rows, tmp_path, **limits)
    issued = int((found.records["state"] == 2).sum())
    assert found.header["issued"] == issued == len(drive.seen)
    assert (issued == len(rows)) is (found.header["state"] == FINISHED)
    assert runtime_us is not None or found.header["state"] == FINISHED
    assert found.header["end_ns"] == found.records["complete_ns"].max()
    assert found.header["most_in_flight"] == found.records["in_flight"].max()
    times = [now_us for now_us, *_ in drive.seen]
    assert times == sorted(times)
