"""Read fio's one-second logs, summed over the threads of a cell."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed
from drivelab.fio.document import MIB, Direction, FioResult, weighted_mean

_DIRECTIONS = {"0": "read", "1": "write"}
_OTHER_DIRECTIONS = frozenset({"2", "3", "4", "5"})
"""Trims, syncs and similar; they are not reported."""

_Key = tuple[int, str]
"""Second and direction."""
_Rows = list[tuple[float, float]]
"""Rows of a log in one second: the time that a row spans, in ms, and its value."""


@dataclass(frozen=True)
class BadLine:
    """An invalid line of a log."""

    second: int
    """Second of the line; without a time, the second after the previous line."""
    log: str
    """`iops`, `lat` or `bw`."""
    words: str
    """What is wrong, for people."""
    negative: bool
    """Whether the value is a number below zero."""


@dataclass(frozen=True)
class Series:
    """Content of a cell's one-second logs."""

    rows: list[dict[str, Any]]
    """time_s (end of the second, since the cell's start), direction, iops, bandwidth_mib_s, mean_latency_us."""
    bad: list[BadLine]


def read_series(directory: Path) -> Series:
    """Return a cell's logs series_iops.N.log and so on, ordered by time.

    A second in which any thread has a bad line has no row.

    Each thread has its own logs (fio manual, "Log File Formats": time in ms, value, direction, …; bandwidth in KiB/s,
    latency in ns). fio omits the last, unfinished second from the bandwidth and IOPS logs, so it has no row. Its last
    latencies are those of the I/Os in flight at the end, a second row of the same time; rows of one second are
    combined by their counts of I/Os, and a latency without a count is left out. The mean latency is weighted by the
    threads' IOPS; it is None if a thread has no latency.
    """
    rates: dict[_Key, float] = defaultdict(float)
    bandwidths: dict[_Key, float] = defaultdict(float)
    weighted: dict[_Key, float] = defaultdict(float)
    bad: list[BadLine] = []
    for thread in sorted({path.name.split(".", 1)[1] for path in directory.glob("series_*.*.log")}):
        iops = _read(directory / f"series_iops.{thread}", "iops", bad)
        latency = _read(directory / f"series_lat.{thread}", "lat", bad)
        for key, rows in iops.items():
            rates[key] += (rate := _mean_rate(rows))
            weighted[key] += rate * _mean_latency(rows, latency.get(key, [])) if rate else 0.0
        for key, rows in _read(directory / f"series_bw.{thread}", "bw", bad).items():
            bandwidths[key] += _mean_rate(rows)
    lost = {line.second for line in bad}
    seconds = [
        {
            "time_s": float(second),
            "direction": direction,
            "iops": rate,
            "bandwidth_mib_s": bandwidths[second, direction] / 1024,
            "mean_latency_us": _mean_us(weighted[second, direction], rate),
        }
        for (second, direction), rate in sorted(rates.items())
        if second not in lost
    ]
    return Series(seconds, bad)


def _mean_rate(rows: _Rows) -> float:
    span_ms = sum(row_ms for row_ms, _ in rows)
    if len(rows) == 1 or not span_ms:
        return rows[0][1]
    return sum(row_ms * rate for row_ms, rate in rows) / span_ms


def _mean_latency(rates: _Rows, latencies: _Rows) -> float:
    """Return the mean of a second's latencies, weighted by the counts of the same rows of the IOPS log."""
    both = list(zip(rates, latencies, strict=False))
    counts = [row_ms * rate for (row_ms, rate), _ in both]
    if len(both) < 2 or not sum(counts):
        return both[0][1][1] if both else math.nan
    return sum(count * value for count, (_, (_, value)) in zip(counts, both, strict=True)) / sum(counts)


def _mean_us(weighted_ns: float, rate: float) -> float | None:
    return weighted_ns / rate / 1000 if rate and math.isfinite(weighted_ns) else None


def _read(path: Path, log: str, bad: list[BadLine]) -> dict[_Key, _Rows]:
    """Return rows by second (from 1) and direction. Fio's times are a few milliseconds early or late."""
    values: dict[_Key, _Rows] = defaultdict(list)
    ended_ms: dict[str, int] = defaultdict(int)
    if not path.is_file():
        return values
    second = 0
    *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")  # drops an incomplete last line
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            time_ms, text, direction = line.split(",", 3)[:3]
            at, value = round(int(time_ms) / 1000), float(text)
        except (ValueError, OverflowError):
            at, value, direction = -1, math.nan, ""
        direction = direction.strip()
        known = direction in _DIRECTIONS or direction in _OTHER_DIRECTIONS
        second = at if at >= 0 and known else second + 1
        if at < 0 or not known:
            bad.append(
                BadLine(second, log, f"{path.name}, line {number}: '{line[:40].strip()}' is not a log line", False)
            )
        elif not math.isfinite(value) or value < 0:
            negative = math.isfinite(value)
            fault = "is below zero" if negative else "is not a finite number"
            bad.append(BadLine(second, log, f"{path.name}, line {number}: {text.strip()} {fault}", negative))
        elif direction in _DIRECTIONS:
            span_ms = min(max(int(time_ms) - ended_ms[direction], 0), 1000)
            values[second, _DIRECTIONS[direction]].append((span_ms, value))
            ended_ms[direction] = int(time_ms)
    return values


def slices(results: Iterable[FioResult], minimum_s: float = 0.0) -> list[FioResult]:
    """Return the differences of successive cumulative results.

    A slice may have no I/O. The largest latency of a slice is exact if it exceeds all earlier latencies; otherwise it
    is the middle of the highest bin that gained I/Os, accurate to 0.8 %. A document that adds less than `minimum_s` is
    skipped, and its I/Os belong to the longer slice. The same holds for a document that fio printed while it waited for
    the last I/Os in flight. The last document is never skipped. A rate that is not a number, or a negative latency,
    appears in the slice that its document ends and in the slice that it begins. Raises CellFailed if a count decreases.
    """
    documents = list(results)
    documents = [document for document in documents[:-1] if not _draining(document, documents[-1])] + documents[-1:]
    ends = boundaries([document.runtime_s for document in documents], minimum_s)
    kept = [completed(documents[end]) for end in ends]
    return kept[:1] + [difference(kept[0], old, new) for old, new in pairwise(kept)]


def completed(result: FioResult) -> FioResult:
    """Return a status with completed I/Os only.

    fio's ioengines.c counts an I/O when it is queued, so the first slice would count a whole queue in flight. The last
    document has no I/O in flight.
    """
    return replace(
        result,
        read=_completed(result.read),
        write=_completed(result.write),
        trim=_completed(result.trim),
        parts=tuple(map(completed, result.parts)),
    )


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
        trim=_direction_difference(old.trim, new.trim),
        parts=tuple(map(difference, first.parts, old.parts, new.parts)),
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
