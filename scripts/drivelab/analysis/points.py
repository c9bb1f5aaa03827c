"""Choose the points MAX, MID and MIN of a demand sweep.

SNIA Solid State Storage Performance Test Specification, demand intensity response time histogram (DIRTH). The sweep
gives IOPS and mean response time for many thread counts and queue depths. MAX is the point with the highest IOPS whose
mean response time is below 5 ms. MIN is the point with the least demand (one thread, depth one). MID is the point whose
IOPS are nearest to the middle of both.

This module has no slow imports, because measuring processes import it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMES = ("max", "mid", "min")


@dataclass(frozen=True)
class Candidate:
    """A cell of the sweep with its results."""

    threads: int
    queue_depth: int
    iops: float
    mean_latency_us: float

    @property
    def outstanding(self) -> int:
        """Return the outstanding I/Os of all threads together."""
        return self.threads * self.queue_depth


def choose(name: str, candidates: Sequence[Candidate], response_time_us: float) -> Candidate:
    """Return the candidate that is `max`, `mid` or `min`.

    If no candidate is below `response_time_us`, MAX is the one with the lowest mean latency. Of equal candidates, the
    one with fewer outstanding I/Os wins, then fewer threads, then lower latency. Raises ValueError without candidates,
    and for another name.
    """
    if not candidates:
        raise ValueError("there are no candidates")
    least = min(candidates, key=_demand)
    within = [cell for cell in candidates if cell.mean_latency_us < response_time_us]
    most = min(within, key=lambda cell: (-cell.iops, *_demand(cell)), default=None)
    if most is None:
        most = min(candidates, key=lambda cell: (cell.mean_latency_us, *_demand(cell)))
    if name == "max":
        return most
    if name == "min":
        return least
    if name != "mid":
        raise ValueError(f"there is no point '{name}'; use one of {', '.join(NAMES)}")
    middle = (most.iops + least.iops) / 2
    return min(candidates, key=lambda cell: (abs(cell.iops - middle), *_demand(cell)))


def _demand(cell: Candidate) -> tuple[float, ...]:
    return cell.outstanding, cell.threads, cell.mean_latency_us, -cell.iops
