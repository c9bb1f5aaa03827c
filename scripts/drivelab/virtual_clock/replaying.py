"""Replay a schedule on the virtual clock: same issue order as the native engine, but the drive is a model.

The model returns the completion time of a request when it is issued, so nothing needs simulation between two issues.
The next request is the earliest of those with a known due time. It is issued when fewer requests than the limit are
in flight.
"""

from __future__ import annotations

import heapq
import mmap
import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.fio.cell_evidence import EPOCH_MS
from drivelab.plan.replay_choice import MOST_IN_FLIGHT
from drivelab.replay.engine_records import (
    COMPLETED,
    FINISHED,
    OPERATION_CODES,
    RESULTS_HEADER,
    RESULTS_HEADER_BYTES,
    TIME_IS_UP,
    Mapped,
    Records,
    checksum,
    make_results,
    open_schedule,
)
from drivelab.trace.parquet_schema import OPERATIONS
from drivelab.virtual.faults import Answering

AS_MODELLED = {
    "fua": "replayed as a plain write, because the model's write buffer survives a power cut",
    "write-zeroes": "replayed as a write, because the model stores no data",
}
"""Remarks for the report about kinds of request that the model does not support."""
_MODELLED = {**{name: name for name in OPERATIONS}, "discard": "trim", "write-zeroes": "write"}
_BATCH = 1 << 16
_RESULT = struct.Struct("<QQiBBH")
_STATE = struct.calcsize("<QQi")
"""Offset of the state in a result."""

_Request = tuple[int, int, int, int, int, int, int, int]
"""A record of a schedule."""


@dataclass
class Course:
    """Totals of a replay; times in ns after its start."""

    issued: int = 0
    end_ns: int = 0
    """Time of the last completion."""
    most_in_flight: int = 0
    time_is_up: bool = False


def replay_schedule(
    drive: Answering,
    schedule: Path,
    results: Path,
    start_us: float,
    *,
    depth_limit: int = MOST_IN_FLIGHT,
    runtime_s: float | None = None,
) -> Course:
    """Replay a schedule from `start_us` and write its results, one record for each request.

    With `runtime_s`, no request is issued after that time, and requests in flight complete.
    Raises UserError if the schedule is damaged or made for a larger target; ValueError for an invalid limit.
    """
    if not 0 < depth_limit <= MOST_IN_FLIGHT:
        raise ValueError(f"invalid limit: {depth_limit} in flight")
    mapped = open_schedule(schedule)
    _verify(schedule, mapped, drive.model.capacity_bytes)
    make_results(results, len(mapped.records), mapped.header["checksum"])
    runtime_ns = None if runtime_s is None else round(1e9 * runtime_s)
    with results.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        course = _Replay(drive, start_us, depth_limit, mapped, content).run(runtime_ns)
        content[: RESULTS_HEADER.itemsize] = _header(content, course, start_us)
    return course


def _verify(path: Path, mapped: Mapped, capacity_bytes: int) -> None:
    header, records = mapped.header, mapped.records
    if header["target_bytes"] > capacity_bytes:
        raise UserError(
            f"{path}: is a schedule for a target of {format_size(header['target_bytes'])}, but the virtual drive has "
            f"{format_size(capacity_bytes)}; prepare the replay for this drive"
        )
    if not len(records):
        raise UserError(f"{path}: the replay's schedule is empty; choose a trace with requests")
    before = sum_so_far = 0
    for first in range(0, len(records), _BATCH):
        batch = records[first : first + _BATCH]
        sum_so_far = checksum(batch, first, sum_so_far)
        if not _is_sound(batch, first, before, header["target_bytes"]):
            raise UserError(f"{path}: the replay's schedule is damaged; replay again")
        before = int(batch["deadline_ns"][-1])
    if sum_so_far != header["checksum"]:
        raise UserError(f"{path}: the replay's schedule is damaged; replay again")


def _is_sound(batch: Records, first: int, deadline_before_ns: int, target_bytes: int) -> bool:
    deadline, length = batch["deadline_ns"], batch["length_bytes"]
    flush = batch["operation"] == OPERATION_CODES["flush"]
    return bool(
        deadline[0] >= deadline_before_ns
        and (deadline[1:] >= deadline[:-1]).all()
        and (batch["operation"] < len(OPERATIONS)).all()
        and (batch["after"] <= np.arange(first, first + len(batch), dtype=np.uint64)).all()
        and ((length > 0) | flush).all()
        and (length <= target_bytes).all()
        and (batch["offset_bytes"] <= target_bytes - length).all()
    )


def _header(content: mmap.mmap, course: Course, start_us: float) -> bytes:
    header = np.frombuffer(content[: RESULTS_HEADER.itemsize], RESULTS_HEADER).copy()
    facts: dict[str, Any] = {
        "start_monotonic_ns": round(1000 * start_us),
        "start_realtime_ns": 10**6 * EPOCH_MS + round(1000 * start_us),
        "issued": course.issued,
        "completed": course.issued,
        "end_ns": course.end_ns,
        "heartbeat_ns": course.end_ns,
        "most_in_flight": course.most_in_flight,
        "state": TIME_IS_UP if course.time_is_up else FINISHED,
    }
    for name, value in facts.items():
        header[name] = value
    return header.tobytes()


class _Replay:
    """The state of a replay between two issues."""

    def __init__(
        self, drive: Answering, start_us: float, depth_limit: int, schedule: Mapped, results: mmap.mmap
    ) -> None:
        self._drive, self._start_us, self._depth_limit = drive, start_us, depth_limit
        self._records, self._results = schedule.records, results
        records = self._records
        self._flight: list[int] = []
        """Heap of the pending completion times."""
        self._due: list[tuple[int, int]] = []
        """Heap of (due time, index) of parked requests whose dependency was issued, so that the due time is known."""
        chained = len(records) if records["after"].any() else 0
        self._first_waiting, self._next_waiting = (array("I", bytes(4 * chained)) for _ in range(2))
        """Linked lists of parked requests by the unissued request that they wait for: 1 + index, newest first."""
        self._course = Course()

    def run(self, runtime_ns: int | None) -> Course:
        """Issue all requests."""
        course, flight, parked = self._course, self._flight, self._due
        following = _indexed(self._records)
        head = self._next_from_file(following)
        now_ns = 0
        while head is not None or parked:
            now_ns = max(now_ns, min(candidate[0] for candidate in (head, parked and parked[0]) if candidate))
            while flight and flight[0] <= now_ns:
                heapq.heappop(flight)
            if runtime_ns is not None and now_ns >= runtime_ns:
                course.time_is_up = True
                break
            if head is None or (parked and parked[0][0] <= max(head[0], now_ns)):
                (due_ns, index), from_file = parked[0], False
                request = self._records[index].item()
            else:
                (due_ns, index, request), from_file = head, True
            if len(flight) >= min(request[5] or self._depth_limit, self._depth_limit):
                # A parked request that becomes due earlier may have a higher depth limit.
                now_ns = min(flight[0], parked[0][0]) if from_file and parked else flight[0]
                continue
            if from_file:
                head = self._next_from_file(following)
            else:
                heapq.heappop(parked)
            self._issue(now_ns, due_ns, index, request)
        return course

    def _next_from_file(self, following: Iterator[tuple[int, _Request]]) -> tuple[int, int, _Request] | None:
        """Return due time, index and request of the next request without dependency; park those before it."""
        for index, request in following:
            if not request[4]:
                return request[0], index, request
            self._park(index, request)
        return None

    def _park(self, index: int, request: _Request) -> None:
        """Let a request wait for its dependency; if that was issued, the due time is known."""
        due_ns, _, _, think_ns, after, *_ = request
        if self._results[_result_offset(after - 1) + _STATE] != COMPLETED:
            self._next_waiting[index] = self._first_waiting[after - 1]
            self._first_waiting[after - 1] = index + 1
            return
        _, done_ns, *_ = _RESULT.unpack_from(self._results, _result_offset(after - 1))
        heapq.heappush(self._due, (max(due_ns, done_ns + think_ns), index))

    def _issue(self, now_ns: int, due_ns: int, index: int, request: _Request) -> None:
        deadline_ns, offset, length, _, _, _, operation, _ = request
        name = OPERATIONS[operation]
        done_us = self._drive.submit(self._start_us + now_ns / 1000, _MODELLED[name], offset, length)
        done_ns = max(round(1000 * (done_us - self._start_us)), now_ns)
        flight, course = self._flight, self._course
        heapq.heappush(flight, done_ns)
        waited = 2 if due_ns > deadline_ns else 1 if now_ns > due_ns else 0
        moved = length if name in ("read", "write") else 0
        _RESULT.pack_into(self._results, _result_offset(index), now_ns, done_ns, moved, COMPLETED, waited, len(flight))
        course.issued += 1
        course.end_ns = max(course.end_ns, done_ns)
        course.most_in_flight = max(course.most_in_flight, len(flight))
        waiting = self._first_waiting[index] if index < len(self._first_waiting) else 0
        while waiting:
            following = self._next_waiting[waiting - 1]
            self._park(waiting - 1, self._records[waiting - 1].item())
            waiting = following


def _result_offset(index: int) -> int:
    return RESULTS_HEADER_BYTES + index * _RESULT.size


def _indexed(records: Records) -> Iterator[tuple[int, _Request]]:
    """Yield index and content of each record."""
    for first in range(0, len(records), _BATCH):
        yield from enumerate(records[first : first + _BATCH].tolist(), first)
