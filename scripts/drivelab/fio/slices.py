"""Compute the slices of a fio run from its cumulative status documents."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from drivelab.fio.document import MIB, CellFailed, Direction, FioResult, weighted_mean


def slices(results: Iterable[FioResult], minimum_s: float = 0.0) -> list[FioResult]:
    """Return the differences of successive cumulative results.

    A slice may have no I/O. The largest latency of a slice is exact if it exceeds all earlier latencies; otherwise it
    is the middle of the highest bin that gained I/Os, accurate to 0.8 %. A document that adds less than `minimum_s` is
    skipped, and its I/Os belong to the longer slice. The same holds for a document that fio printed while it waited for
    the last I/Os in flight. The last document is never skipped. A rate that is not a number, or a negative latency,
    appears in the slice that its document ends and in the slice that it begins. Raises CellFailed if a count decreases.
    """
    documents = list(results)
    documents = [one for one in documents[:-1] if not _draining(one, documents[-1])] + documents[-1:]
    ends = boundaries([document.runtime_s for document in documents], minimum_s)
    kept = [completed(documents[end]) for end in ends]
    return kept[:1] + [difference(kept[0], old, new) for old, new in pairwise(kept)]


def completed(result: FioResult) -> FioResult:
    """Return a status with completed I/Os only.

    fio's ioengines.c counts an I/O when it is queued, so the first slice would count a whole queue in flight. The last
    document has no I/O in flight.
    """
    return replace(result, read=_completed(result.read), write=_completed(result.write))


def _completed(direction: Direction) -> Direction:
    iops = direction.latencies / direction.runtime_s if direction.runtime_s > 0 else 0.0
    finite = math.isfinite(direction.iops) and math.isfinite(direction.ios)
    uncounted = direction.ios - direction.latencies
    return replace(direction, ios=direction.latencies, iops=iops if finite else math.nan, uncounted=uncounted)


def _draining(result: FioResult, last: FioResult) -> bool:
    """Return whether a status lies between issue and count of the last I/O."""
    return result.ios == last.ios and _counted(result) < _counted(last)


def _counted(result: FioResult) -> tuple[int, int]:
    read, write = result.read, result.write
    return read.latencies + write.latencies, read.bytes + write.bytes


def boundaries(runtimes_s: Sequence[float], minimum_s: float = 0.0) -> list[int]:
    """Return the ascending indices of the documents that end slices."""
    kept: list[int] = []
    for index in range(len(runtimes_s) - 1, -1, -1):
        if not kept or runtimes_s[kept[-1]] - runtimes_s[index] > minimum_s:
            kept.append(index)
    kept.reverse()
    if len(kept) > 1 and runtimes_s[kept[0]] <= minimum_s:
        del kept[0]
    return kept


def difference(first: FioResult, old: FioResult, new: FioResult) -> FioResult:
    """Return the slice between two cumulative results; `first` is the run's first."""
    thread_time_s = new.thread_time_s - old.thread_time_s

    def cpu_pct(before_pct: float, after_pct: float) -> float:
        used_s = after_pct * new.thread_time_s - before_pct * old.thread_time_s
        return max(used_s / thread_time_s, 0.0) if thread_time_s > 0 else 0.0

    return FioResult(
        read=_direction_difference(old.read, new.read),
        write=_direction_difference(old.write, new.write),
        started=first.started + timedelta(seconds=old.runtime_s),
        fio_version=new.fio_version,
        thread_time_s=thread_time_s,
        user_cpu_pct=cpu_pct(old.user_cpu_pct, new.user_cpu_pct),
        system_cpu_pct=cpu_pct(old.system_cpu_pct, new.system_cpu_pct),
        options=new.options,
    )


def _direction_difference(old: Direction, new: Direction) -> Direction:
    bins = {key: count - old.bins.get(key, 0) for key, count in new.bins.items() if count != old.bins.get(key, 0)}
    ios, size, latencies = new.ios - old.ios, new.bytes - old.bytes, new.latencies - old.latencies
    if min(ios, size, latencies, *bins.values()) < 0 or old.bins.keys() - new.bins.keys():
        raise CellFailed("fio's status documents contradict each other: a count decreased")
    runtime_s = round(new.runtime_s - old.runtime_s, 6)
    risen = bool(new.latencies) and not (old.latencies and new.max_latency_us <= old.max_latency_us)
    highest_us = min(max(bins) / 1000, new.max_latency_us) if bins else math.nan
    finite = all(map(math.isfinite, (old.iops, old.bandwidth_mib_s, new.iops, new.bandwidth_mib_s)))
    return Direction(
        ios=ios,
        bytes=size,
        runtime_s=runtime_s,
        iops=(ios / runtime_s if runtime_s > 0 else 0.0) if finite else math.nan,
        bandwidth_mib_s=size / MIB / runtime_s if runtime_s > 0 else 0.0,
        mean_latency_us=weighted_mean((new.latencies, new.mean_latency_us), (-old.latencies, old.mean_latency_us)),
        max_latency_us=new.max_latency_us if risen else highest_us,
        bins=bins,
        latencies=latencies,
        min_latency_us=next(
            (latency_us for latency_us in (old.min_latency_us, new.min_latency_us) if latency_us < 0), math.nan
        ),
        uncounted=max(old.uncounted, new.uncounted, key=abs),
    )
