"""Read the measured values of a cell from a document of fio 3, `json` or `json+`, with one or more jobs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from drivelab.collect.cell_rows import PERCENTILES, number_columns
from drivelab.fio.consistency import contradiction, least_below_zero
from drivelab.fio.document import MIB, Direction, FioResult, sum_of
from drivelab.plan.cell import Cell

_MAX_EXCESS_SHARE, _MAX_EXCESS_MS = 0.02, 50.0
"""How much longer than its I/O a process may run: a share, plus a time for start and end."""
_MAX_IDLE_SHARE = 0.1
"""Largest share of the run time for which processes may already have ended."""


class RefusalError(Exception):
    """A file cannot be imported: why not, and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}")


def measured(jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]], cell: Cell) -> dict[str, Any]:
    """Return columns of table `cells` from the jobs of fio's document, which together are one cell.

    Raises RefusalError for an error of fio, for a load other than the cell's, and for contradictory
    numbers; KeyError, TypeError or ValueError if the document is not valid output of fio.
    """
    for job in jobs:
        if job["error"]:
            raise RefusalError(f"reports error {job['error']}", "leave the file out and measure again")
        _refuse_other_load(job, cell.threads // len(jobs))
    results = [_result(job, given) for job, given in zip(jobs, options, strict=True)]
    total = replace(
        results[0],
        read=_sum_of([result.read for result in results]),
        write=_sum_of([result.write for result in results]),
        user_cpu_pct=sum(result.user_cpu_pct for result in results) / len(jobs),
        system_cpu_pct=sum(result.system_cpu_pct for result in results) / len(jobs),
    )
    if not total.ios:
        raise RefusalError("has no I/O", "leave the file out and measure again")
    directions = {"read": total.read, "write": total.write}
    for (name, direction), share in zip(directions.items(), (cell.read_share, 100 - cell.read_share), strict=True):
        if (direction.ios and not share) or (not direction.ios and share == 100):
            raise RefusalError(f"has {direction.ios} {name}s, which contradicts its options", "leave the file out")
    if any(job.get("trim", {}).get("total_ios") for job in jobs):
        raise RefusalError("contains trims", "leave the file out")
    values = number_columns(total)
    if negative := [name for name, value in values.items() if value < 0]:
        raise RefusalError(f"has a negative value, {negative[0].replace('_', ' ')}", "leave the file out")
    for result in results:
        if (problem := least_below_zero(result)) is not None:
            raise RefusalError(f"has a negative value, the {problem}", "leave the file out")
        if (problem := contradiction(result, cell)) is not None:
            raise RefusalError(f"contradicts itself: {problem}", "leave the file out")
    for name in ("runtime_s", "iops", "bandwidth_mib_s", "mean_latency_us"):
        if not (math.isfinite(values[name]) and values[name] > 0):
            raise RefusalError(f"has no number for {name.replace('_', ' ')}", "leave the file out")
    return {**values, **dict(_percentiles(jobs, total))}


def _refuse_other_load(job: Mapping[str, Any], threads: int) -> None:
    """Raise RefusalError unless `job_runtime` fits the number of processes in the options.

    If fio reports several sections of a job file as one group, the file has the options of one section only, but the
    run time of all their processes, `job_runtime` (not in the first versions of fio 3). Apart from start and end, a
    process runs no longer than the group. If it runs shorter, the load is incomplete for part of the time.
    """
    total_ms = float(job.get("job_runtime", 0))
    longest_ms = max(float(job[name]["runtime"]) for name in ("read", "write"))
    if not total_ms or not longest_ms:
        return
    processes = total_ms / longest_ms
    reason = (
        f"has the run time of {processes:.3g} processes, but options for {threads}: job_runtime is {total_ms:g} ms, "
        f"the longest run time of a direction {longest_ms:g} ms"
    )
    if total_ms > threads * (longest_ms * (1 + _MAX_EXCESS_SHARE) + _MAX_EXCESS_MS):
        raise RefusalError(reason, "run fio once for each section of a job file, or without group_reporting")
    if processes < threads * (1 - _MAX_IDLE_SHARE):
        raise RefusalError(reason, "run fio with time_based and runtime, so that all processes run to the end")


def _result(job: Mapping[str, Any], options: Mapping[str, str]) -> FioResult:
    """Return the numbers of one job; time and version are those of the document.

    The time of its threads is nan: Little's law holds for drivelab's own jobs, but not for all that fio can do (think
    time, rates, verification).
    """
    read, write = (_direction(job[name]) for name in ("read", "write"))
    user_pct, system_pct = (float(job[name]) for name in ("usr_cpu", "sys_cpu"))
    return FioResult(read, write, datetime.min, "", math.nan, user_pct, system_pct, options)


def _direction(part: Mapping[str, Any]) -> Direction:
    """Return reads or writes of a job.

    Early versions of fio 3 give only KiB/s. Bins of the total latency are only in json+, with lat_percentiles=1.
    """
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


def _sum_of(parts: Sequence[Direction]) -> Direction:
    """Return reads or writes of all jobs, without bins if a job has none."""
    total = sum_of(parts)
    return total if all(part.bins for part in parts if part.ios) else replace(total, bins={})


def _percentiles(jobs: Sequence[Mapping[str, Any]], total: FioResult) -> Iterator[tuple[str, float]]:
    """Yield percentiles of the total latency, which need lat_percentiles=1.

    They come from the bins of json+, else from fio's percentiles if there is one direction of one job.
    """
    if all(direction.bins for direction in (total.read, total.write) if direction.ios):
        yield from zip(PERCENTILES, total.percentiles_us(*PERCENTILES.values()), strict=True)
        return
    used = [part for job in jobs for part in (job["read"], job["write"]) if part["total_ios"]]
    if len(used) == 1:
        known = {float(name): value for name, value in used[0]["lat_ns"].get("percentile", {}).items()}
        yield from ((name, known[percent] / 1000) for name, percent in PERCENTILES.items() if percent in known)


_WITHOUT_LATENCY = ("gtod_reduce", "disable_lat")


def refuse_forms(jobs: Sequence[Mapping[str, Any]], options: Sequence[Mapping[str, str]]) -> None:
    """Raise RefusalError for reporting options of fio that omit values a cell needs."""
    if any("mixed" in job and "read" not in job for job in jobs):
        raise RefusalError(
            "was written with unified_rw_reporting=1, which adds reads and writes together",
            "run fio without that option",
        )
    for name in _WITHOUT_LATENCY:
        if any(job_options.get(name, "0") != "0" for job_options in options):
            raise RefusalError(f"was measured with {name}=1, so it has no latencies", "run fio without that option")
