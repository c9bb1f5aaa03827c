"""Write the schedule of an open-loop load: requests that are due at a given rate, whatever the drive does.

The requests are drawn from a stream of reads and a stream of writes, each with its place on the drive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.plan.cell import Cell
from drivelab.plan.ranges import active_range
from drivelab.replay.engine_records import OPERATION_CODES, SCHEDULE_RECORD, Records, ScheduleWriter
from drivelab.trace.parquet_schema import open_trace

POISSON, CONSTANT = "poisson", "constant"
_BATCH = 1 << 17

Floats = npt.NDArray[np.float64]
Gaps = Callable[[int], Floats]
"""Returns the next gaps between arrivals, in multiples of the mean gap."""


def gaps_of(arrivals: str, seed: int, trace: Path | None) -> Gaps:
    """Return the gaps of a plan's `arrivals`; `trace` is needed for those of a trace."""
    if arrivals == POISSON:
        return poisson_gaps(seed)
    if arrivals == CONSTANT:
        return constant_gaps()
    assert trace is not None  # the plan has refused a study without one
    return trace_gaps(trace, seed)


def poisson_gaps(seed: int) -> Gaps:
    """Return gaps of a Poisson process: independent and exponential."""
    rng = np.random.default_rng(seed)
    return lambda count: rng.exponential(1.0, count)


def constant_gaps() -> Gaps:
    return np.ones


def trace_gaps(trace: Path, seed: int) -> Gaps:
    """Return the gaps of a trace's requests in their order, from a drawn place, and again from the start at its end.

    Bursts and pauses keep their shape: all gaps are scaled by one factor. Raises UserError for a trace without gaps.
    """
    with open_trace(trace) as file:
        parts = [batch.column("queue_ns").to_numpy() for batch in file.batches(("queue_ns",))]
    gaps = np.diff(np.concatenate(parts)).astype(np.float64) if parts else np.zeros(0)
    if not gaps.sum() > 0:
        raise UserError(f"{trace}: all requests arrive at once, so the trace has no rate; choose another trace")
    gaps /= gaps.mean()
    place = int(np.random.default_rng(seed).integers(gaps.size))

    def following(count: int) -> Floats:
        nonlocal place
        taken: Floats = gaps[(place + np.arange(count)) % gaps.size]
        place = (place + count) % gaps.size
        return taken

    return following


def due_times_ns(gaps: Gaps, iops: float, count: int) -> Iterator[npt.NDArray[np.uint64]]:
    """Yield the due times of `count` requests at a mean rate, in batches; the first is due one gap after the start."""
    now = 0.0
    for first in range(0, count, _BATCH):
        times = now + np.cumsum(gaps(min(_BATCH, count - first)))
        now = float(times[-1])
        yield np.rint(times * (1e9 / iops)).astype(np.uint64)


@dataclass(frozen=True)
class Stream:
    """Requests of one operation; offsets are `start_bytes` plus a multiple of the block."""

    operation: str
    share: float
    """Share of the cell's I/Os; the shares of both streams add up to 1."""
    start_bytes: int
    blocks: int
    """Number of blocks that the stream covers."""


def streams_of(cell: Cell, capacity_bytes: int, logical_block_bytes: int) -> tuple[Stream, ...]:
    """Return the reads and the writes of a cell, without one that has no I/Os.

    Random ones share the whole active range. Sequential ones get an equal stretch of it each, so that they do not
    access the same blocks. Raises UserError if a stretch is smaller than a block.
    """
    start, length = active_range(replace(cell, threads=1), capacity_bytes, logical_block_bytes)
    block = cell.block_size_bytes
    shares = {"read": cell.read_share / 100, "write": 1 - cell.read_share / 100}
    shares = {operation: share for operation, share in shares.items() if share > 0}
    sequential = cell.pattern == "sequential"
    unit = max(block, logical_block_bytes)
    stretch = length // len(shares) // unit * unit if sequential else length
    if stretch < unit:
        raise UserError(
            f"cell {cell.label}: the active range does not hold a block of {format_size(block)} for reads and for "
            "writes; choose a smaller one or a larger range"
        )
    return tuple(
        Stream(operation, share, start + number * stretch * sequential, stretch // block)
        for number, (operation, share) in enumerate(shares.items())
    )


class Draw:
    """Endless requests drawn from the streams of a cell."""

    def __init__(self, cell: Cell, streams: tuple[Stream, ...], seed: int) -> None:
        self._streams, self._block_bytes = streams, cell.block_size_bytes
        self._random = cell.pattern == "random"
        self._rng = np.random.default_rng(seed)
        self._bounds = np.cumsum([stream.share for stream in streams])[:-1]
        self._operation = np.array([OPERATION_CODES[stream.operation] for stream in streams], "u1")
        self._following = [0] * len(streams)
        """Next block of each sequential stream."""

    def requests(self, count: int) -> Records:
        """Return the next requests as schedule records without a depth."""
        chosen = np.searchsorted(self._bounds, self._rng.random(count), side="right")
        records = np.zeros(count, SCHEDULE_RECORD)
        records["operation"] = self._operation[chosen]
        records["length_bytes"] = self._block_bytes
        for number, stream in enumerate(self._streams):
            rows = np.flatnonzero(chosen == number)
            records["offset_bytes"][rows] = stream.start_bytes + self._block_bytes * self._indices(number, len(rows))
        return records

    def _indices(self, number: int, count: int) -> npt.NDArray[np.int64]:
        stream = self._streams[number]
        if self._random:
            return self._rng.integers(0, stream.blocks, count)
        first = self._following[number]
        self._following[number] = (first + count) % stream.blocks
        return (first + np.arange(count)) % stream.blocks


def load_schedule(
    cell: Cell, gaps: Gaps, iops: float, count: int, path: Path, seed: int, capacity_bytes: int, block_bytes: int
) -> float:
    """Write `count` requests of the cell's workload at a rate, and return the due time of the last, in seconds.

    The same arguments give the same bytes. Raises UserError if the workload does not fit the drive.
    """
    draw = Draw(cell, streams_of(cell, capacity_bytes, block_bytes), seed)
    last_ns = 0
    with ScheduleWriter(path, capacity_bytes // block_bytes * block_bytes, block_bytes) as file:
        for due_ns in due_times_ns(gaps, iops, count):
            records = draw.requests(len(due_ns))
            records["deadline_ns"] = due_ns
            file.write(records)
            last_ns = int(due_ns[-1])
    return last_ns / 1e9
