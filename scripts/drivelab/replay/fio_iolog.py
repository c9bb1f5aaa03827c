"""Replay by fio ≥ 3.33 from iologs of version 3.

What was found out about fio 3.33, and why the job looks as it does:

* With an asynchronous engine fio takes no completions while it waits for the time of the next request: at depth 64
  and a request every ms the mean latency read 64 ms where it was 0.1 ms, and the bytes of the last 63 requests were
  missing. With io_submit_mode=offload it ignores the times altogether, at some depths it hangs. Only synchronous
  engines tell the truth, so the schedule is dealt out to lanes, threads with one request at a time, as many as the
  trace had in flight.
* A `sync` line makes a synchronous engine call fsync(2), which on a block device is a flush, and is counted in
  `sync.total_ios`. Asynchronous engines lose its time, `datasync` is counted nowhere.
* A `trim` line is dropped ("bad ddir: 2" in stderr), and nothing in an iolog says FUA or write-zeroes.
* The delay before a request is counted from the issue of the one before it, so an I/O's own duration is no drift,
  but time lost to one that lasts longer than the gap after it is never made up for.
* A time stamp of 0 stands for "none": the first request would come at once. Hence all times have 1 µs added, and the
  `add` and `open` lines carry that 1. fio creates missing files, also in /dev: allow_file_create=0.
* With group_reporting the JSON has one job; its `job_runtime` is the sum over the lanes, `runtime` of read and
  write the span of the longest one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from drivelab.errors import UserError
from drivelab.fio.job import PERCENTILES
from drivelab.replay.prepare import Prepared
from drivelab.replay.records import FUA, OPERATION_CODES, Records, open_schedule

MOST_LANES = 32
_ACTIONS = {OPERATION_CODES[name]: action for name, action in (("read", "read"), ("write", "write"), ("flush", "sync"))}
_FIRST_US = 1
_CHUNK = 1 << 18


class FioIolog:
    """Replays reads, writes and flushes."""

    name = "fio iolog v3"

    def job(self, prepared: Prepared, device: str, directory: Path) -> str:
        """Job text with one section a lane, and `lane-K.iolog` in `directory` for each.

        Requests with deadlines come at those, others as fast as the drive takes them from as many lanes as the
        schedule allows in flight at the most. Raises UserError for dependencies, which an iolog cannot express.
        """
        if prepared.choice.dependencies != "none":
            raise UserError(
                f"{self.name} cannot keep requests in order of {prepared.choice.dependencies}: an iolog knows no "
                "dependencies; choose dependencies none or the native engine"
            )
        records = open_schedule(prepared.schedule).records
        lanes = _lanes(prepared, records)
        names = {int(lane): f"lane-{lane}" for lane in np.unique(lanes)}
        _write_iologs(records, lanes, device, {lane: directory / f"{name}.iolog" for lane, name in names.items()})
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
        } | ({} if prepared.choice.timing.has_deadlines else {"replay_no_stall": 1})
        sections = [f"[{name}]\nread_iolog={name}.iolog\n" for name in names.values()]
        return "[global]\n" + "".join(f"{key}={value}\n" for key, value in options.items()) + "".join(sections)

    def dropped(self, prepared: Prepared) -> dict[str, int]:
        """Discards and write-zeroes, and the FUA flag of writes, which are replayed without it."""
        planned, records = prepared.planned_counts(), open_schedule(prepared.schedule).records
        counts = {
            "discards": planned["discard"]["requests"],
            "write-zeroes": planned["write-zeroes"]["requests"],
            "FUA flags": sum(int((chunk["flags"] & FUA != 0).sum()) for _, chunk in _chunks(records)),
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


def _write_iologs(records: Records, lanes: npt.NDArray[np.int64], device: str, paths: dict[int, Path]) -> None:
    """An iolog for each lane, without what fio cannot replay."""
    end_us = int(records["deadline_ns"][-1]) // 1000 + _FIRST_US
    with ExitStack() as stack:
        files = {lane: stack.enter_context(path.open("w", encoding="ascii")) for lane, path in paths.items()}
        for file in files.values():
            file.write(f"fio version 3 iolog\n{_FIRST_US} {device} add\n{_FIRST_US} {device} open\n")
        for low, chunk in _chunks(records):
            known = np.isin(chunk["operation"], list(_ACTIONS))
            chunk, among = chunk[known], lanes[low : low + _CHUNK][known]
            time_us = chunk["deadline_ns"] // 1000 + _FIRST_US
            columns = (among, time_us, chunk["operation"], chunk["offset_bytes"], chunk["length_bytes"])
            for lane, time, operation, offset, length in zip(*(values.tolist() for values in columns), strict=True):
                files[lane].write(f"{time} {device} {_ACTIONS[operation]} {offset} {length}\n")
        for file in files.values():
            file.write(f"{end_us} {device} close\n")


def _lanes(prepared: Prepared, records: Records) -> npt.NDArray[np.int64]:
    """Lane of each record; a write has that of the flush that it waits for, as one lane does one after the other.

    fio refuses an iolog of flushes only, so such lanes join the first that moves data.
    """
    alone = records["after"] == 0
    group = np.cumsum(alone) - 1
    if prepared.choice.timing.has_deadlines:
        begins = np.flatnonzero(alone)
        time_us = (records["deadline_ns"][begins] // 1000).astype(np.int64)
        latency = pq.read_table(prepared.planned, columns=["trace_latency_ns"]).column(0)
        busy_ns = np.asarray(latency.fill_null(0).to_numpy(), np.int64)
        lanes = deal_out(time_us, np.maximum.reduceat(busy_ns, begins) // 1000)[group]
    else:
        lanes = group % min(int(records["depth"].max()), MOST_LANES)
    moves = records["operation"] <= OPERATION_CODES["write"]
    useful = np.unique(lanes[moves])
    return np.asarray(np.where(np.isin(lanes, useful), lanes, useful[0]), np.int64)


def _chunks(records: Records) -> Iterator[tuple[int, Records]]:
    for low in range(0, len(records), _CHUNK):
        yield low, records[low : low + _CHUNK]
