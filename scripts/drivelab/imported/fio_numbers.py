"""What a document of fio 3 that others made says of a cell, be it `json` or `json+`, of one job or of several."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from drivelab.errors import UserError
from drivelab.fio.consistency import contradiction, least_below_zero
from drivelab.fio.document import MIB, Direction, FioResult, weighted_mean
from drivelab.plan.cell import Cell

_PERCENTS = {"50": 50.0, "90": 90.0, "99": 99.0, "999": 99.9, "9999": 99.99, "99999": 99.999, "999999": 99.9999}
"""By what stands in the names of columns."""

_LONGER, _AROUND_MS = 0.02, 50.0
"""What a process may run longer than its I/O takes: a share, and a time before and after it."""
_SHORTER = 0.1
"""Share of the processes' time in which they may have ended already."""


def refused(path: Path, reason: str, remedy: str) -> UserError:
    """The error that a file is not imported for."""
    return UserError(f"{path}: {reason}; {remedy}")


def measured(path: Path, jobs: Sequence[Mapping[str, Any]], cell: Cell) -> dict[str, Any]:
    """Columns of table `cells` from the jobs of fio's document, which together are one cell.

    Raises UserError, with `path`, for an error of fio, for what is no measurement of the cell and for numbers that
    contradict each other; KeyError, TypeError or ValueError where the document is not as fio writes it.
    """
    for job in jobs:
        if job["error"]:
            raise refused(path, f"reports error {job['error']}", "leave the file out and measure again")
        _refuse_other_load(path, job, cell.threads // len(jobs))
    results = [_result(job) for job in jobs]
    whole = replace(
        results[0], read=_together([one.read for one in results]), write=_together([one.write for one in results])
    )
    if not whole.ios:
        raise refused(path, "is of a run without any I/O", "leave the file out and measure again")
    directions = {"read": whole.read, "write": whole.write}
    for (name, one), share in zip(directions.items(), (cell.read_share, 100 - cell.read_share), strict=True):
        if (one.ios and not share) or (not one.ios and share == 100):
            raise refused(path, f"has {one.ios} {name}s, which is not what its options ask for", "leave the file out")
    if any(job.get("trim", {}).get("total_ios") for job in jobs):
        raise refused(path, "has trims among its I/Os", "leave the file out")
    found = {
        "runtime_s": whole.runtime_s,
        "iops": whole.iops,
        "bandwidth_mib_s": whole.bandwidth_mib_s,
        "mean_latency_us": whole.mean_latency_us,
        "max_latency_us": whole.max_latency_us,
        "bytes_written": whole.write.bytes,
        "user_cpu_pct": sum(one.user_cpu_pct for one in results) / len(jobs),
        "system_cpu_pct": sum(one.system_cpu_pct for one in results) / len(jobs),
    }
    for name, one in directions.items():
        found |= {
            f"{name}_ios": one.ios,
            f"{name}_iops": one.iops,
            f"{name}_bandwidth_mib_s": one.bandwidth_mib_s,
            f"{name}_mean_latency_us": one.mean_latency_us,
        }
    if wrong := [name for name, value in found.items() if value < 0]:
        raise refused(path, f"has a negative value, {wrong[0].replace('_', ' ')}", "leave the file out")
    for name in ("runtime_s", "iops", "bandwidth_mib_s", "mean_latency_us"):
        if not (math.isfinite(found[name]) and found[name] > 0):
            raise refused(path, f"has no number for {name.replace('_', ' ')}", "leave the file out")
    for result in results:
        if (words := least_below_zero(result)) is not None:
            raise refused(path, f"has a negative value, the {words}", "leave the file out")
        if (words := contradiction(result, cell)) is not None:
            raise refused(path, f"contradicts itself: {words}", "leave the file out")
    return {**found, **dict(_percentiles(jobs, whole))}


def _refuse_other_load(path: Path, job: Mapping[str, Any], threads: int) -> None:
    """Sections of a job file that are reported as one group leave the options of one of them in the file, but the run
    time of all their processes together, `job_runtime` (not in the first versions of fio 3).

    A process runs no longer than the group but for its beginning and end; one that runs shorter is no load for a while.
    """
    together_ms = float(job.get("job_runtime", 0))
    longest_ms = max(float(job[name]["runtime"]) for name in ("read", "write"))
    if not together_ms or not longest_ms:
        return
    told = together_ms / longest_ms
    reason = (
        f"tells of {told:.3g} processes, its options of {threads}: job_runtime is {together_ms:g} ms, the longest run "
        f"time of a direction {longest_ms:g} ms"
    )
    if together_ms > threads * (longest_ms * (1 + _LONGER) + _AROUND_MS):
        raise refused(path, reason, "run fio once for each section of a job file, or without group_reporting")
    if told < threads * (1 - _SHORTER):
        raise refused(path, reason, "run fio with time_based and runtime, so that all processes run until the end")


def _result(job: Mapping[str, Any]) -> FioResult:
    """Numbers of one job; time and version are the document's."""
    read, write = (_direction(job[name]) for name in ("read", "write"))
    user_pct, system_pct = (float(job[name]) for name in ("usr_cpu", "sys_cpu"))
    return FioResult(read, write, datetime.min, "", math.nan, user_pct, system_pct)


def _direction(part: Mapping[str, Any]) -> Direction:
    """Reads or writes of a job. Early versions of fio 3 have KiB a second only, and bins of the whole latency are in
    json+ alone, with lat_percentiles=1."""
    ios, latency = int(part["total_ios"]), part["lat_ns"]
    mean_us, largest_us = (float(latency[name]) / 1000 if ios else math.nan for name in ("mean", "max"))
    return Direction(
        ios=ios,
        bytes=int(part["io_bytes"]),
        runtime_s=part["runtime"] / 1000,
        iops=float(part["iops"]),
        bandwidth_mib_s=float(part["bw_bytes"] if "bw_bytes" in part else 1024 * part["bw"]) / MIB,
        mean_latency_us=mean_us,
        max_latency_us=largest_us,
        bins={int(key): int(count) for key, count in latency.get("bins", {}).items() if count},
        latencies=ios,
        min_latency_us=float(latency.get("min", math.nan)) / 1000 if ios else math.nan,
    )


def _together(parts: Sequence[Direction]) -> Direction:
    """Reads or writes of all jobs; without bins where one of them has none."""
    used = [one for one in parts if one.ios] or [parts[0]]
    bins = sum((Counter(one.bins) for one in used), Counter[int]()) if all(one.bins for one in used) else {}
    return Direction(
        ios=sum(one.ios for one in parts),
        bytes=sum(one.bytes for one in parts),
        runtime_s=max(one.runtime_s for one in parts),
        iops=math.fsum(one.iops for one in parts),
        bandwidth_mib_s=math.fsum(one.bandwidth_mib_s for one in parts),
        mean_latency_us=weighted_mean(*((one.ios, one.mean_latency_us) for one in parts)),
        max_latency_us=max(one.max_latency_us for one in used),
        bins=bins,
        latencies=sum(one.latencies for one in parts),
    )


def _percentiles(jobs: Sequence[Mapping[str, Any]], whole: FioResult) -> Iterator[tuple[str, float]]:
    """Of the whole latency, with lat_percentiles=1: by the bins of json+, else fio's of one direction of one job."""
    if all(one.bins for one in (whole.read, whole.write) if one.ios):
        values = whole.percentiles_us(*_PERCENTS.values())
        yield from zip((f"p{name}_latency_us" for name in _PERCENTS), values, strict=True)
        return
    used = [part for job in jobs for part in (job["read"], job["write"]) if part["total_ios"]]
    if len(used) == 1:
        known = {float(name): value for name, value in used[0]["lat_ns"].get("percentile", {}).items()}
        yield from ((f"p{n}_latency_us", known[one] / 1000) for n, one in _PERCENTS.items() if one in known)
