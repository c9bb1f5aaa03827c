"""Read fio's one-second logs, summed over the threads of a cell."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

_DIRECTIONS = {"0": "read", "1": "write"}
_OTHER_DIRECTIONS = frozenset({"2", "3", "4", "5"})
"""Trims, syncs and similar; they are not reported."""

_Key = tuple[int, str]
"""Second (or interval) and direction."""


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


def read_series(directory: Path, prefix: str = "series", interval_ms: int = 1000) -> Series:
    """Return a cell's logs PREFIX_iops.N.log and so on, ordered by time.

    `interval_ms` is fio's log_avg_msec; the intervals of each second are averaged. A second in which any thread has a
    bad line has no row.

    Each thread has its own logs (fio manual, "Log File Formats": time in ms, value, direction, …; bandwidth in KiB/s,
    latency in ns). fio omits the last, unfinished second from the bandwidth and IOPS logs, so it has no row. The mean
    latency is weighted by the threads' IOPS; it is None if a thread has no latency.
    """
    rates: dict[_Key, float] = defaultdict(float)
    bandwidths: dict[_Key, float] = defaultdict(float)
    weighted: dict[_Key, float] = defaultdict(float)
    bad: list[BadLine] = []
    if interval_ms < 1 or 1000 % interval_ms:
        raise ValueError(f"intervals of {interval_ms} ms do not fill a second")
    logs = directory.glob(f"{escape(prefix)}_*.*.log")
    for thread in sorted({path.name.removeprefix(prefix).split(".", 1)[1] for path in logs}):
        iops = _read(directory / f"{prefix}_iops.{thread}", "iops", bad, interval_ms)
        latency = _read(directory / f"{prefix}_lat.{thread}", "lat", bad, interval_ms)
        for key, value in iops.items():
            rates[key] += value
            weighted[key] += value * latency.get(key, math.nan) if value else 0.0
        for key, value in _read(directory / f"{prefix}_bw.{thread}", "bw", bad, interval_ms).items():
            bandwidths[key] += value
    if interval_ms != 1000:
        rates, bandwidths, weighted = (_per_second(sums, 1000 // interval_ms) for sums in (rates, bandwidths, weighted))
    lost = {line.second for line in bad}
    rows = [
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
    return Series(rows, bad)


def _per_second(values: Mapping[_Key, float], count: int) -> dict[_Key, float]:
    """Return averages over the `count` intervals of each complete second.

    An interval without a value had no I/O.
    """
    averages: dict[_Key, float] = defaultdict(float)
    whole = max((number for number, _ in values), default=0) // count
    for (number, direction), value in values.items():
        if (second := -(-number // count)) <= whole:
            averages[second, direction] += value / count
    return averages


def _mean_us(weighted_ns: float, rate: float) -> float | None:
    return weighted_ns / rate / 1000 if rate and math.isfinite(weighted_ns) else None


def _read(path: Path, log: str, bad: list[BadLine], interval_ms: int) -> dict[_Key, float]:
    """Return values by interval (from 1) and direction.

    Fio's times are a few milliseconds early or late.
    """
    values: dict[_Key, float] = {}
    if not path.is_file():
        return values
    interval = 0
    *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")  # drops an incomplete last line
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            time_ms, text, direction = line.split(",", 3)[:3]
            at, value = round(int(time_ms) / interval_ms), float(text)
        except (ValueError, OverflowError):
            at, value, direction = -1, math.nan, ""
        direction = direction.strip()
        known = direction in _DIRECTIONS or direction in _OTHER_DIRECTIONS
        interval = at if at >= 0 and known else interval + 1
        second = -(-interval * interval_ms // 1000)
        if at < 0 or not known:
            bad.append(
                BadLine(second, log, f"{path.name}, line {number}: '{line[:40].strip()}' is not a log line", False)
            )
        elif not math.isfinite(value) or value < 0:
            negative = math.isfinite(value)
            fault = "is below zero" if negative else "is not a finite number"
            bad.append(BadLine(second, log, f"{path.name}, line {number}: {text.strip()} {fault}", negative))
        elif direction in _DIRECTIONS:
            values[interval, _DIRECTIONS[direction]] = value
    return values
