"""Slices of one fio run, from status documents that each count from its start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

from drivelab.fio.document import MIB, CellFailed, Direction, FioResult, weighted_mean


def slices(results: Iterable[FioResult], minimum_s: float = 0.0) -> list[FioResult]:
    """Differences of successive results that each count from the start of the run.

    The largest latency of a slice is exact when it exceeds all before it; else it is the middle of the
    highest bin that gained I/Os, true to 0.8 %. A document that adds less than `minimum_s` is skipped,
    never the last: its I/Os belong to the longer slice then; likewise one that was printed after the last I/O had been
    issued, while fio waited for those in flight. A slice may be without I/O. A rate that is no number, or a latency
    below zero, is in both slices that its document ends and begins. Raises CellFailed when a count goes back.
    """
    found = list(results)
    found = [one for one in found[:-1] if not _draining(one, found[-1])] + found[-1:]
    kept = [completed(found[place]) for place in boundaries([one.runtime_s for one in found], minimum_s)]
    return kept[:1] + [difference(kept[0], old, new) for old, new in pairwise(kept)]


def completed(result: FioResult) -> FioResult:
    """A status with the I/Os that were completed: fio counts those in flight as well, a whole queue in the first slice.

    (fio's ioengines.c counts an I/O when it is queued; the last document has none in flight.)
    """
    return replace(result, read=_completed(result.read), write=_completed(result.write))


def _completed(direction: Direction) -> Direction:
    iops = direction.latencies / direction.runtime_s if direction.runtime_s > 0 else 0.0
    told = math.isfinite(direction.iops) and math.isfinite(direction.ios)
    uncounted = direction.ios - direction.latencies
    return replace(direction, ios=direction.latencies, iops=iops if told else math.nan, uncounted=uncounted)


def _draining(result: FioResult, last: FioResult) -> bool:
    """Whether a status was printed when nothing more was issued, but not all of it was counted yet."""
    return result.ios == last.ios and _counted(result) < _counted(last)


def _counted(result: FioResult) -> tuple[int, int]:
    read, write = result.read, result.write
    return read.latencies + write.latencies, read.bytes + write.bytes


def boundaries(runtimes_s: Sequence[float], minimum_s: float = 0.0) -> list[int]:
    """Places of the documents that slices end with, given the runtime of each document; ascending."""
    kept: list[int] = []
    for place in range(len(runtimes_s) - 1, -1, -1):
        if not kept or runtimes_s[kept[-1]] - runtimes_s[place] > minimum_s:
            kept.append(place)
    kept.reverse()
    if len(kept) > 1 and runtimes_s[kept[0]] <= minimum_s:
        del kept[0]
    return kept


def difference(first: FioResult, old: FioResult, new: FioResult) -> FioResult:
    """The slice between two results that each count from the start of a run whose first result is `first`."""
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
        raise CellFailed("fio's status documents do not add up: a count went back")
    runtime_s = round(new.runtime_s - old.runtime_s, 6)
    risen = bool(new.latencies) and not (old.latencies and new.max_latency_us <= old.max_latency_us)
    highest_us = min(max(bins) / 1000, new.max_latency_us) if bins else math.nan
    known = all(math.isfinite(rate) for one in (old, new) for rate in (one.iops, one.bandwidth_mib_s))
    return Direction(
        ios=ios,
        bytes=size,
        runtime_s=runtime_s,
        iops=(ios / runtime_s if runtime_s > 0 else 0.0) if known else math.nan,
        bandwidth_mib_s=size / MIB / runtime_s if runtime_s > 0 else 0.0,
        mean_latency_us=weighted_mean((new.latencies, new.mean_latency_us), (-old.latencies, old.mean_latency_us)),
        max_latency_us=new.max_latency_us if risen else highest_us,
        bins=bins,
        latencies=latencies,
        min_latency_us=next((one.min_latency_us for one in (old, new) if one.min_latency_us < 0), math.nan),
        uncounted=max(old.uncounted, new.uncounted, key=abs),
    )
