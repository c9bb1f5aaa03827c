"""Replay with fio ≥ 3.33 from iologs of version 3.

Behaviour of fio 3.33 that shapes the job:

* With an asynchronous engine, fio reaps no completions while it waits for the next request's time. At depth 64 with a
  request every ms, it reported a mean latency of 64 ms instead of 0.1 ms, and lost the bytes of the last 63 requests.
  With io_submit_mode=offload it ignores the times, and at some depths it hangs. Only synchronous engines measure
  correctly. The schedule is therefore dealt out to lanes: threads with one request at a time, as many as the trace had
  in flight.
* A `sync` line makes a synchronous engine call fsync(2). On a block device this is a flush, counted in
  `sync.total_ios`. Asynchronous engines lose its time; `datasync` is counted nowhere.
* A `trim` line is dropped ("bad ddir: 2" in stderr). An iolog cannot express FUA or write-zeroes.
* The delay before a request counts from the issue of the previous request, so an I/O's duration causes no drift. If
  an I/O lasts longer than the gap after it, fio never catches up.
* A timestamp of 0 means "none", and the first request would come at once. All times therefore have 1 µs added; the
  `add` and `open` lines carry that 1. fio creates missing files, also in /dev: allow_file_create=0.
* With group_reporting the JSON has one job. Its `job_runtime` is the sum over the lanes; `runtime` of read and write
  is the span of the longest lane.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from drivelab.core.errors import UserError
from drivelab.fio.job import PERCENTILES
from drivelab.fio.result import FioResult, read_replay
from drivelab.plan.replay_choice import TimingChoice
from drivelab.replay.engine_records import FUA, OPERATION_CODES, Records, open_schedule
from drivelab.replay.prepare import Prepared

MOST_LANES = 32
_ACTIONS = {OPERATION_CODES[name]: action for name, action in (("read", "read"), ("write", "write"), ("flush", "sync"))}
_FIRST_US = 1
_CHUNK = 1 << 18


class FioIolog:
    """Replay reads, writes and flushes with fio."""

    name = "fio iolog v3"

    def job(self, prepared: Prepared, device: str, directory: Path) -> str:
        """Return a job with one section per lane; write `lane-K.iolog` for each.

        Requests with deadlines are issued then. Others are issued as fast as the drive allows, from as many lanes as
        the schedule's highest depth. Raises UserError for dependencies, which an iolog cannot express.
        """
        if prepared.choice.conflicts == "ordered":
            raise UserError(
                f"{self.name} cannot keep overlapping requests in order; choose conflicts as-traced, or the native "
                "engine"
            )
        if prepared.choice.dependencies != "none":
            raise UserError(
                f"{self.name} cannot keep requests in order of {prepared.choice.dependencies}: an iolog cannot "
                "express dependencies; choose dependencies none or the native engine"
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
        """Count what fio does not replay: discards, write-zeroes, FUA flags."""
        planned, records = prepared.planned_counts(), open_schedule(prepared.schedule).records
        counts = {
            "discards": planned["discard"]["requests"],
            "write-zeroes": planned["write-zeroes"]["requests"],
            "FUA flags": sum(int((chunk["flags"] & FUA != 0).sum()) for _, chunk in _chunks(records)),
        }
        return {kind: count for kind, count in counts.items() if count}


def deal_out(time_us: npt.NDArray[np.int64], busy_us: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each request's lane: the lowest idle one, below MOST_LANES.

    `time_us` is ascending. When all lanes are busy, a request waits for the first idle lane, as at a bounded queue
    depth.
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
    """Write an iolog for each lane, without what fio cannot replay."""
    end_us = int(records["deadline_ns"][-1]) // 1000 + _FIRST_US
    with ExitStack() as stack:
        files = {lane: stack.enter_context(path.open("w", encoding="ascii")) for lane, path in paths.items()}
        for file in files.values():
            file.write(f"fio version 3 iolog\n{_FIRST_US} {device} add\n{_FIRST_US} {device} open\n")
        for low, chunk in _chunks(records):
            known = np.isin(chunk["operation"], list(_ACTIONS))
            chunk, lane_of = chunk[known], lanes[low : low + _CHUNK][known]
            time_us = chunk["deadline_ns"] // 1000 + _FIRST_US
            columns = (lane_of, time_us, chunk["operation"], chunk["offset_bytes"], chunk["length_bytes"])
            for lane, time, operation, offset, length in zip(*(values.tolist() for values in columns), strict=True):
                files[lane].write(f"{time} {device} {_ACTIONS[operation]} {offset} {length}\n")
        for file in files.values():
            file.write(f"{end_us} {device} close\n")


def _lanes(prepared: Prepared, records: Records) -> npt.NDArray[np.int64]:
    """Return each record's lane.

    A write shares the lane of the flush it waits for, as a lane keeps the order.

    fio refuses an iolog that holds only flushes, so such lanes join the first lane that moves data.
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


REMARK = "bandwidth by the whole duration: fio does not report when requests were in flight"
_NINES = (50, 90, 99, 99.9, 99.99, 99.999)


def totals(directory: Path, prepared: Mapping[str, Any]) -> dict[str, Any]:
    """Return values for drivelab.replay.evaluation.replay_report from fio's evidence in `directory`.

    `prepared` is Prepared.to_mapping(). Raises CellFailed when the evidence is invalid.
    """
    result = read_replay(directory)
    flushes = int(json.loads((directory / "fio.json").read_text())["jobs"][0]["sync"]["total_ios"])
    done = {
        "read": {"requests": result.read.ios, "bytes": result.read.bytes},
        "write": {"requests": result.write.ios, "bytes": result.write.bytes},
        "flush": {"requests": flushes, "bytes": 0},
    }
    done = {name: done.get(name, {"requests": 0, "bytes": 0}) for name in prepared["planned"]}
    timed = TimingChoice.from_mapping(prepared["choice"]["timing"]).has_deadlines
    planned_s = prepared["issue_span_s"]
    return {
        "issued": done,
        "completed": done,
        "duration_s": result.runtime_s,
        "duration_ratio": result.runtime_s / planned_s if planned_s else None,
        "duration_basis": f"fio's runtime to first to last {'deadline' if timed else 'arrival in the trace'}",
        "bandwidth_mib_s": result.bytes / 2**20 / result.runtime_s if result.runtime_s else None,
        "access_time_us": result.mean_latency_us,
        "read_access_time_us": result.read.mean_latency_us,
        "write_access_time_us": result.write.mean_latency_us,
        "latency_us": _latency(result),
    }


def _latency(result: FioResult) -> dict[str, float | None]:
    """Return the latency distribution from fio's bins; None where I/Os are too few.

    Keys are those of drivelab.replay.evaluation.requests.distribution.
    """
    known = [percent for percent in _NINES if result.ios * (100 - percent) >= 100]
    values = dict(zip(known, result.percentiles_us(*known), strict=True)) if known else {}
    return {
        "mean": result.mean_latency_us,
        **{f"p{str(percent).replace('.', '')}": values.get(percent) for percent in _NINES},
        "max": result.max_latency_us,
    }
