"""Whether the numbers of one of fio's JSON documents hold together; fio computes rates from counts and run time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from drivelab.imported.tables import MIB
from drivelab.plan.cell import Cell

TOLERANCE = 0.01
"""Relative: fio's own numbers agree to the rounding of what it prints."""
VIRTUAL_CLOCK = "virtual-clock"
"""What drivelab's virtual drives have for fio's version where the time is theirs too."""
_DIRECTIONS = ("read", "write")
_LATENCY = ("min", "mean", "max")


def contradictions(jobs: list[Mapping[str, Any]], cell: Cell) -> Iterator[str]:
    """Each pair of numbers that contradict each other, in words that follow "has"."""
    for job in jobs:
        for name in _DIRECTIONS:
            if job[name]["total_ios"]:
                yield from _of_direction(name, job[name], cell)


def _of_direction(name: str, one: Mapping[str, Any], cell: Cell) -> Iterator[str]:
    ios, io_bytes, runtime_ms = (float(one[key]) for key in ("total_ios", "io_bytes", "runtime"))
    if runtime_ms <= 0:
        yield f"{ios:.0f} {name}s in no time"
        return
    rounded = TOLERANCE + 1 / runtime_ms  # the run time is in whole milliseconds
    iops = float(one["iops"])
    if not _near(iops, 1000 * ios / runtime_ms, rounded):
        yield f"{iops:g} {name} IOPS, but {ios:.0f} {name}s in {runtime_ms / 1000:g} s"
    rate = float(one["bw_bytes"] if "bw_bytes" in one else 1024 * one["bw"])
    # early versions print whole KiB a second
    if not _near(rate, 1000 * io_bytes / runtime_ms, rounded, 1024):
        yield f"{rate / MIB:g} MiB/s of {name}s, but {io_bytes / MIB:g} MiB in {runtime_ms / 1000:g} s"
    if not _near(io_bytes / ios, cell.block_size_bytes, TOLERANCE):
        yield f"{io_bytes / ios:g} bytes in each of its {name}s, but the block size {cell.block_size_bytes}"
    least, mean, most = (float(one["lat_ns"].get(key, one["lat_ns"]["mean"])) for key in _LATENCY)
    if not least <= mean * (1 + TOLERANCE) or not mean <= most * (1 + TOLERANCE):
        yield f"a mean latency of {name}s of {mean / 1000:g} us, but from {least / 1000:g} to {most / 1000:g} us"


def _near(value: float, expected: float, relative: float, absolute: float = 0.0) -> bool:
    return abs(value - expected) <= relative * expected + absolute
