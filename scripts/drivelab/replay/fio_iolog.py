"""Replay by fio ≥ 3.33 from iologs of version 3.

What was found out about fio 3.33, and why the job looks as it does:

* With an asynchronous engine fio takes no completions while it waits for the time of the next request: at depth 64
  and a request every ms the mean latency read 64 ms where it was 0.1 ms, and the bytes of the last 63 requests were
  missing. With io_submit_mode=offload it ignores the times altogether, at some depths it hangs. Only synchronous
  engines tell the truth, so the schedule is dealt out to lanes, threads with one request at a time, as many as the
  trace had in flight.
* A `sync` line makes a synchronous engine call fsync(2), which on a block device is a flush, and is counted in
  `sync.total_ios`. Asynchronous engines lose its time, `datasync` is counted nowhere.
* A `trim` line is dropped ("bad ddir: 2" in stderr), and nothing in an iolog says FUA.
* The delay before a request is counted from the issue of the one before it, so an I/O's own duration is no drift,
  but time lost to one that lasts longer than the gap after it is never made up for.
* A time stamp of 0 stands for "none": the first request would come at once. Hence all times have 1 µs added, and the
  `add` and `open` lines carry that 1. fio creates missing files, also in /dev: allow_file_create=0.
* With group_reporting the JSON has one job; its `job_runtime` is the sum over the lanes, `runtime` of read and
  write the span of the longest one.
"""

from __future__ import annotations

import heapq
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from drivelab.errors import UserError
from drivelab.fio.job import PERCENTILES
from drivelab.replay.schedule import Schedule

TIMINGS = ("original", "asap")
MOST_LANES = 32
_ACTIONS = {"read": "read", "write": "write", "flush": "sync", "write-zeroes": "write"}
_FIRST_US = 1


class Engine(Protocol):
    """Something that replays a schedule on a block device through fio."""

    @property
    def name(self) -> str: ...

    def job(self, schedule: Schedule, device: str, directory: Path, timing: str) -> str:
        """Job text; files that it needs are written to `directory`, where fio has to be started."""
        ...

    def dropped(self, schedule: Schedule) -> dict[str, int]:
        """What of the schedule the engine does not replay, by kind; empty: all of it is replayed."""
        ...


class FioIolog:
    """Replays reads, writes and flushes; implements Engine."""

    name = "fio iolog v3"

    def job(self, schedule: Schedule, device: str, directory: Path, timing: str) -> str:
        """Job text with one section a lane, and `lane-K.iolog` in `directory` for each.

        `timing` is `original` (each request at its time) or `asap` (each lane as fast as the drive goes).
        Raises UserError for another one.
        """
        if timing not in TIMINGS:
            raise UserError(f"replay timing '{timing}' is unknown to {self.name}; it knows {', '.join(TIMINGS)}")
        lanes = _lanes(schedule, timing)
        sections: list[str] = []
        for lane in np.unique(lanes).tolist():
            path = directory / f"lane-{lane}.iolog"
            path.write_text(iolog_text(schedule, lanes == lane, device))
            sections.append(f"[lane-{lane}]\nread_iolog={path.name}\n")
        options = {
            "direct": 1,
            "ioengine": "psync",
            "thread": 1,
            "group_reporting": 1,
            "allow_file_create": 0,
            "lat_percentiles": 1,
            "percentile_list": PERCENTILES,
            "write_bw_log": "series",
            "write_iops_log": "series",
            "write_lat_log": "series",
            "log_avg_msec": 1000,
        } | ({"replay_no_stall": 1} if timing == "asap" else {})
        return "[global]\n" + "".join(f"{key}={value}\n" for key, value in options.items()) + "".join(sections)

    def dropped(self, schedule: Schedule) -> dict[str, int]:
        """Discards, and the FUA flag of writes, which are replayed without it."""
        counts = {
            "discards": int((schedule.frame["operation"] == "discard").sum()),
            "FUA flags": int(schedule.frame["fua"].sum()),
        }
        return {kind: count for kind, count in counts.items() if count}


def deal_out(time_us: npt.NDArray[np.int64], busy_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Lane of each request: the lowest one that was idle at its time in the trace, at most MOST_LANES of them.

    `time_us` rises. When all lanes are busy a request waits for the one that is idle first, as it would at a
    bounded queue depth.
    """
    lanes = np.zeros(len(time_us), np.int64)
    idle: list[int] = []
    busy: list[tuple[int, int]] = []
    opened = 0
    for index, (now, span) in enumerate(zip(time_us.tolist(), busy_us.tolist(), strict=True)):
        while busy and busy[0][0] <= now:
            heapq.heappush(idle, heapq.heappop(busy)[1])
        if idle:
            lane = heapq.heappop(idle)
        elif opened < MOST_LANES:
            lane, opened = opened, opened + 1
        else:
            now, lane = heapq.heappop(busy)
        heapq.heappush(busy, (now + max(span, 1), lane))
        lanes[index] = lane
    return lanes


def iolog_text(schedule: Schedule, chosen: npt.NDArray[np.bool_], device: str) -> str:
    """iolog of the chosen requests, without what fio cannot replay; a write with a preflush is a sync and a write."""
    lines = [f"{_FIRST_US} {device} add\n", f"{_FIRST_US} {device} open\n"]
    columns = ("time_us", "operation", "offset_bytes", "length_bytes", "preflush")
    chosen_frame = schedule.frame[chosen]
    for time_us, operation, offset, length, preflush in zip(
        *(chosen_frame[name].tolist() for name in columns), strict=True
    ):
        if preflush:
            lines.append(f"{time_us + _FIRST_US} {device} sync 0 0\n")
        if operation in _ACTIONS:
            lines.append(f"{time_us + _FIRST_US} {device} {_ACTIONS[operation]} {offset} {length}\n")
    end_us = int(schedule.frame["time_us"].iloc[-1]) + _FIRST_US
    return "fio version 3 iolog\n" + "".join(lines) + f"{end_us} {device} close\n"


def _lanes(schedule: Schedule, timing: str) -> npt.NDArray[np.int64]:
    """Lane of each request. fio refuses an iolog of flushes only, so such lanes join the first that moves data."""
    frame = schedule.frame
    lanes = deal_out(frame["time_us"].to_numpy(np.int64), frame["busy_us"].to_numpy(np.int64))
    if timing == "asap":
        lanes = np.arange(len(lanes)) % (int(lanes.max()) + 1)
    useful = np.unique(lanes[frame["operation"].isin(["read", "write", "write-zeroes"]).to_numpy()])
    return np.where(np.isin(lanes, useful), lanes, useful[0])
