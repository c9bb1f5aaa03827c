"""Write the schedule of an open-loop load: requests that are due at a given rate, whatever the drive does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import UserError
from drivelab.plan.cell import COMPOSITE, Cell
from drivelab.replay.composite import Draw
from drivelab.replay.engine_records import ScheduleWriter
from drivelab.replay.streams import streams_of
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


def load_schedule(
    cell: Cell, gaps: Gaps, iops: float, count: int, path: Path, seed: int, capacity_bytes: int, block_bytes: int
) -> float:
    """Write `count` requests of the cell's workload at a rate, and return the due time of the last, in seconds.

    The same arguments give the same bytes. Raises UserError if the workload does not fit the drive.
    """
    draw = Draw(streams_of(_as_streams(cell), capacity_bytes, block_bytes), seed)
    last_ns = 0
    with ScheduleWriter(path, capacity_bytes // block_bytes * block_bytes, block_bytes) as file:
        for due_ns in due_times_ns(gaps, iops, count):
            records = draw.requests(len(due_ns))
            records["deadline_ns"] = due_ns
            file.write(records)
            last_ns = int(due_ns[-1])
    return last_ns / 1e9


def _as_streams(cell: Cell) -> Cell:
    """Return the cell with its reads and its writes as streams."""
    shares = {"read": cell.read_share / 100, "write": 1 - cell.read_share / 100}
    streams = tuple(
        {"operation": operation, "block_size_bytes": cell.block_size_bytes, "pattern": cell.pattern, "share": share}
        for operation, share in shares.items()
        if share > 0
    )
    return replace(cell, pattern=COMPOSITE, streams=streams)
