"""fio's one-second logs, summed over the threads of a cell."""

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
"""Trims, syncs and the like, of which nothing is told."""

_Place = tuple[int, str]
"""Second, or interval, and direction."""


@dataclass(frozen=True)
class BadLine:
    """A line of a log that says nothing."""

    second: int
    """Where it says no time, the one after the line before it."""
    log: str
    """iops, lat or bw."""
    words: str
    negative: bool
    """Whether it holds a number, one below zero."""


@dataclass(frozen=True)
class Series:
    """What the one-second logs of a cell say."""

    rows: list[dict[str, Any]]
    """time_s (end of the second, since the cell's start), direction, iops, bandwidth_mib_s, mean_latency_us."""
    bad: list[BadLine]


def read_series(directory: Path, prefix: str = "series", interval_ms: int = 1000) -> Series:
    """The logs PREFIX_iops.N.log and so on of a cell, ordered by time; a second of which any thread has a bad line has
    no row. `interval_ms` is fio's log_avg_msec; as many as it takes to fill a second are averaged.

    Each thread has logs of its own (fio manual, "Log File Formats": time ms, value, direction, …; bandwidth in
    KiB/s, latency in ns). fio leaves out the last, unfinished second of the bandwidth and IOPS logs; such a second
    has no row here. The mean latency is weighted with the threads' IOPS; it is None where one of them has none.
    """
    rates: dict[_Place, float] = defaultdict(float)
    bandwidths: dict[_Place, float] = defaultdict(float)
    weighted: dict[_Place, float] = defaultdict(float)
    bad: list[BadLine] = []
    if interval_ms < 1 or 1000 % interval_ms:
        raise ValueError(f"intervals of {interval_ms} ms do not fill a second")
    logs = directory.glob(f"{escape(prefix)}_*.*.log")
    for thread in sorted({path.name.removeprefix(prefix).split(".", 1)[1] for path in logs}):
        iops = _read(directory / f"{prefix}_iops.{thread}", "iops", bad, interval_ms)
        latency = _read(directory / f"{prefix}_lat.{thread}", "lat", bad, interval_ms)
        for place, value in iops.items():
            rates[place] += value
            weighted[place] += value * latency.get(place, math.nan) if value else 0.0
        for place, value in _read(directory / f"{prefix}_bw.{thread}", "bw", bad, interval_ms).items():
            bandwidths[place] += value
    if interval_ms != 1000:
        rates, bandwidths, weighted = (_in_seconds(one, 1000 // interval_ms) for one in (rates, bandwidths, weighted))
    lost = {one.second for one in bad}
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


def _in_seconds(values: Mapping[_Place, float], count: int) -> dict[_Place, float]:
    """Averages over the `count` intervals of each second; an interval without a value is one without I/O, and a last
    second that is not whole is left out.
    """
    found: dict[_Place, float] = defaultdict(float)
    whole = max((number for number, _ in values), default=0) // count
    for (number, direction), value in values.items():
        if (second := -(-number // count)) <= whole:
            found[second, direction] += value / count
    return found


def _mean_us(weighted_ns: float, rate: float) -> float | None:
    return weighted_ns / rate / 1000 if rate and math.isfinite(weighted_ns) else None


def _read(path: Path, log: str, bad: list[BadLine], interval_ms: int) -> dict[_Place, float]:
    """Values by number of the interval, from 1, and direction; fio's end a few milliseconds early or late."""
    found: dict[_Place, float] = {}
    if not path.is_file():
        return found
    interval = 0
    *lines, _ = path.read_text(encoding="utf-8", errors="replace").split("\n")  # a line that was cut off has no end
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
                BadLine(second, log, f"{path.name}, line {number}: '{line[:40].strip()}' is no line of it", False)
            )
        elif not math.isfinite(value) or value < 0:
            negative = math.isfinite(value)
            what = "is below zero" if negative else "is no finite number"
            bad.append(BadLine(second, log, f"{path.name}, line {number}: {text.strip()} {what}", negative))
        elif direction in _DIRECTIONS:
            found[interval, _DIRECTIONS[direction]] = value
    return found
