"""Parse fio's json+ documents."""

from __future__ import annotations

import functools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from drivelab.core.errors import CellFailed

MIB = 1 << 20
TRIM = "trim"
_SPACE = re.compile(r"\s*")


class NoIo(CellFailed):
    """fio ended in order, but did no I/O."""

    def __init__(self) -> None:
        super().__init__("fio did no I/O at all")


class NotANumber(CellFailed):
    """A value is not a number where fio writes a number."""


@dataclass(frozen=True)
class Direction:
    """Reads or writes of a run. Latency (submission to completion) is nan without I/O."""

    ios: int
    bytes: int
    runtime_s: float
    iops: float
    bandwidth_mib_s: float
    mean_latency_us: float
    max_latency_us: float
    bins: Mapping[int, int]
    """I/Os by latency in ns. A key is the middle of a bin; bins are 1/64 of an octave wide (fio's stat.h)."""
    latencies: int
    """I/Os in `bins` and in the mean; in a status of a running job a few fewer than `ios`."""
    min_latency_us: float = math.nan
    """Also nan for a slice, because only a whole run has it; negative if one of the status documents has that."""
    uncounted: float = 0
    """For a slice: `ios - latencies` of its two status documents, whichever is farther from zero."""


NOTHING = Direction(0, 0, 0.0, 0.0, 0.0, math.nan, math.nan, {}, 0)
"""No I/O in a direction."""


@dataclass(frozen=True)
class FioResult:
    """A whole fio run, or one slice of it. Rates and latencies are those of reads and writes; if it has only trims, of
    these."""

    read: Direction
    write: Direction
    started: datetime
    fio_version: str
    thread_time_s: float
    """Sum of the run times of all threads; the base of the CPU percentages."""
    user_cpu_pct: float
    system_cpu_pct: float
    options: Mapping[str, str] = field(default_factory=dict)
    """Job options that fio reports."""
    trim: Direction = NOTHING
    parts: tuple[FioResult, ...] = ()
    """The result of each of several simultaneous workloads; empty if there is one."""

    @property
    def directions(self) -> dict[str, Direction]:
        """Return reads and writes, or trims if there are only these."""
        both = {"read": self.read, "write": self.write}
        return {TRIM: self.trim} if self.trim.ios and not (self.read.ios or self.write.ios) else both

    @property
    def ios(self) -> int:
        return sum(part.ios for part in self.directions.values())

    @property
    def bytes(self) -> int:
        return sum(part.bytes for part in self.directions.values())

    @property
    def runtime_s(self) -> float:
        return max(part.runtime_s for part in self.directions.values())

    @property
    def iops(self) -> float:
        """Return reads and writes per second (PTS: the IOPS of a mix are the sum of both)."""
        return sum(part.iops for part in self.directions.values())

    @property
    def bandwidth_mib_s(self) -> float:
        return sum(part.bandwidth_mib_s for part in self.directions.values())

    @property
    def mean_latency_us(self) -> float:
        """Return the mean over all I/Os; nan without I/O."""
        return weighted_mean(*((part.latencies, part.mean_latency_us) for part in self.directions.values()))

    @property
    def min_latency_us(self) -> float:
        """Return the smallest latency; nan if it is not known, as for a slice."""
        known = [part.min_latency_us for part in self.directions.values() if part.latencies]
        return min(known, default=math.nan) if not any(map(math.isnan, known)) else math.nan

    @property
    def max_latency_us(self) -> float:
        known = [part.max_latency_us for part in self.directions.values() if part.latencies]
        return max(known, default=math.nan)

    @property
    def bins(self) -> Counter[int]:
        """Return the I/Os by latency in ns."""
        return sum((Counter(part.bins) for part in self.directions.values()), Counter[int]())

    def percentiles_us(self, *percents: float) -> tuple[float, ...]:
        """Return latency percentiles: the first bin that reaches each, as in fio.

        If the middle of the last bin exceeds the largest latency, the largest latency is returned.
        """
        bins = self.bins
        total = bins.total()
        if not total:
            return (math.nan,) * len(percents)
        by_percent: dict[float, float] = {}
        waiting = sorted(percents, reverse=True)
        so_far = 0
        for latency_ns in sorted(bins):
            so_far += bins[latency_ns]
            while waiting and so_far >= _needed(waiting[-1], total):
                by_percent[waiting.pop()] = min(latency_ns / 1000, self.max_latency_us)
        return tuple(by_percent[percent] for percent in percents)


def _needed(percent: float, total: int) -> float:
    return percent / 100 * total * (1 - 1e-12)  # 99.9 % of 1000 is 999; rounding errors must not make it 1000


def weighted_mean(*parts: tuple[int, float]) -> float:
    """Return the mean of (count, mean) pairs; nan if the counts add up to 0."""
    total = sum(count for count, _ in parts)
    return math.fsum(count * mean for count, mean in parts if count) / total if total else math.nan


def output_text(directory: Path) -> str:
    """Return the text of fio's output file in a folder; empty if it cannot be read."""
    try:
        return (directory / "fio.json").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def documents(text: str) -> Iterator[Mapping[str, Any]]:
    """Yield the JSON documents of fio's output. Raises CellFailed for anything between them."""
    position = _end_of_space(text, 0)
    if position == len(text):
        raise CellFailed("fio printed no JSON")
    while position < len(text):
        if text[position] != "{":
            line = text[position : position + 200].partition("\n")[0]
            raise CellFailed(f"fio printed text where JSON should be: {line.strip()}")
        try:
            document, position = _document_at(text, position)
        except json.JSONDecodeError:
            raise CellFailed("fio's JSON is cut off or damaged") from None
        yield document
        position = _end_of_space(text, position)


@functools.lru_cache(maxsize=1)  # two checks of one run follow each other, in the gap before the next
def _document_at(text: str, position: int) -> tuple[dict[str, Any], int]:
    return json.JSONDecoder().raw_decode(text, position)


def _end_of_space(text: str, position: int) -> int:
    match = _SPACE.match(text, position)
    return match.end() if match else position


def from_document(document: Mapping[str, Any]) -> FioResult:
    """Return the result in one json+ document.

    Raises CellFailed for missing fields or an error from fio. fio's `timestamp_ms` is the time of printing; the start
    is earlier by the job's run time.
    """
    try:
        groups = [_group(document, job) for job in document["jobs"]]
        if not groups:
            raise CellFailed("fio reports no job")
        return groups[0] if len(groups) == 1 else _together(groups)
    except KeyError as error:
        raise CellFailed(f"fio's JSON lacks {error}") from None
    except (TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
        raise CellFailed(f"fio's JSON is not as expected: {error}") from None


def _group(document: Mapping[str, Any], job: Mapping[str, Any]) -> FioResult:
    if job["error"]:
        raise CellFailed(f"fio reports error {job['error']}")
    read, write = _direction(job["read"]), _direction(job["write"])
    trim = _direction(job[TRIM]) if job.get(TRIM, {}).get("total_ios") else NOTHING
    printed = datetime.fromtimestamp(_number(document, "timestamp_ms") / 1000, UTC)
    return FioResult(
        read=read,
        write=write,
        started=printed - timedelta(seconds=max(read.runtime_s, write.runtime_s, trim.runtime_s)),
        fio_version=str(document["fio version"]).removeprefix("fio-"),
        thread_time_s=_number(job, "job_runtime") / 1000,
        user_cpu_pct=float(_number(job, "usr_cpu")),
        system_cpu_pct=float(_number(job, "sys_cpu")),
        options={**document.get("global options", {}), **job.get("job options", {})},
        trim=trim,
    )


def _together(groups: list[FioResult]) -> FioResult:
    """Return the result of workloads that ran simultaneously, with each as a part."""
    times_s = [group.thread_time_s for group in groups]

    def cpu_pct(name: str) -> float:
        used = math.fsum(time_s * getattr(group, name) for time_s, group in zip(times_s, groups, strict=True))
        return used / math.fsum(times_s) if any(times_s) else 0.0

    return replace(
        groups[0],
        read=sum_of([group.read for group in groups]),
        write=sum_of([group.write for group in groups]),
        trim=sum_of([group.trim for group in groups]),
        started=min(group.started for group in groups),
        thread_time_s=math.fsum(times_s),
        user_cpu_pct=cpu_pct("user_cpu_pct"),
        system_cpu_pct=cpu_pct("system_cpu_pct"),
        parts=tuple(groups),
    )


def sum_of(parts: Sequence[Direction]) -> Direction:
    """Return one direction of several simultaneous workloads."""
    busy = [part for part in parts if part.ios]
    if len(busy) < 2:
        return (busy or [NOTHING])[0]
    return Direction(
        ios=sum(part.ios for part in busy),
        bytes=sum(part.bytes for part in busy),
        runtime_s=max(part.runtime_s for part in busy),
        iops=math.fsum(part.iops for part in busy),
        bandwidth_mib_s=math.fsum(part.bandwidth_mib_s for part in busy),
        mean_latency_us=weighted_mean(*((part.latencies, part.mean_latency_us) for part in busy)),
        max_latency_us=max(part.max_latency_us for part in busy),
        bins=sum((Counter(part.bins) for part in busy), Counter[int]()),
        latencies=sum(part.latencies for part in busy),
        min_latency_us=min(part.min_latency_us for part in busy),
        uncounted=math.fsum(part.uncounted for part in busy),
    )


def _number(part: Mapping[str, Any], name: str) -> Any:
    """Return a number of fio's, possibly NaN or infinity. Raises NotANumber for anything else."""
    value = part[name]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotANumber(f"fio's JSON has {json.dumps(value)} as {name}, which is not a number")
    return value


def _direction(part: Mapping[str, Any]) -> Direction:
    if part["drop_ios"]:
        raise CellFailed(f"fio dropped {part['drop_ios']} I/Os")
    latency = part["lat_ns"]
    count = int(latency["N"])
    bins = {int(key): int(value) for key, value in latency.get("bins", {}).items() if value}
    if count and not bins:
        raise CellFailed("fio's JSON has no latency bins; fio must run with json+ output and lat_percentiles")
    return Direction(
        ios=_number(part, "total_ios"),
        bytes=_number(part, "io_bytes"),
        runtime_s=_number(part, "runtime") / 1000,
        iops=float(_number(part, "iops")),
        bandwidth_mib_s=_number(part, "bw_bytes") / MIB,
        mean_latency_us=_number(latency, "mean") / 1000 if count else math.nan,
        max_latency_us=_number(latency, "max") / 1000 if count else math.nan,
        bins=bins,
        latencies=count,
        min_latency_us=_number({"min": math.nan, **latency}, "min") / 1000 if count else math.nan,
    )
