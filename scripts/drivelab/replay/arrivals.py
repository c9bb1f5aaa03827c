"""Write the schedule of an open-loop load: requests that are due at a given rate, whatever the drive does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from drivelab.core.errors import UserError
from drivelab.plan.cell import Cell
from drivelab.replay.engine_records import ScheduleWriter
from drivelab.replay.streams import Draw, streams_of
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
    draw = Draw(cell, streams_of(cell, capacity_bytes, block_bytes), seed)
    last_ns = 0
    with ScheduleWriter(path, capacity_bytes // block_bytes * block_bytes, block_bytes) as file:
        for due_ns in due_times_ns(gaps, iops, count):
            records = draw.requests(len(due_ns))
            records["deadline_ns"] = due_ns
            file.write(records)
            last_ns = int(due_ns[-1])
    return last_ns / 1e9
