"""Points of a surface of demand: MAX, MID and MIN IOPS within a response time.

SNIA Solid State Storage Performance Test Specification, demand intensity / response time histogram: from the IOPS and
mean response times at many threads and queue depths, MAX is the point of the highest IOPS whose mean response time is
below 5 ms, MIN that of the least demand (one thread, depth one), and MID the one whose IOPS are nearest to the middle
of the two.

No imports that take time: a measuring process asks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

NAMES = ("max", "mid", "min")


@dataclass(frozen=True)
class Candidate:
    """A cell of the surface with what was measured of it."""

    threads: int
    queue_depth: int
    iops: float
    mean_latency_us: float

    @property
    def outstanding(self) -> int:
        """I/Os of all threads together."""
        return self.threads * self.queue_depth


def choose(name: str, candidates: Sequence[Candidate], response_time_us: float) -> Candidate:
    """The candidate that is `max`, `mid` or `min`.

    MAX is the one of the lowest mean latency where none is below `response_time_us`. Equals are told apart by the fewer
    I/Os outstanding, the fewer threads, the lower latency. Raises ValueError without candidates, and for another name.
    """
    if not candidates:
        raise ValueError("there are no candidates")
    least = min(candidates, key=_demand)
    within = [one for one in candidates if one.mean_latency_us < response_time_us]
    most = min(within, key=lambda one: (-one.iops, *_demand(one)), default=None)
    if most is None:
        most = min(candidates, key=lambda one: (one.mean_latency_us, *_demand(one)))
    if name == "max":
        return most
    if name == "min":
        return least
    if name != "mid":
        raise ValueError(f"there is no point '{name}'; known are {', '.join(NAMES)}")
    middle = (most.iops + least.iops) / 2
    return min(candidates, key=lambda one: (abs(one.iops - middle), *_demand(one)))


def _demand(one: Candidate) -> tuple[float, ...]:
    return one.outstanding, one.threads, one.mean_latency_us, -one.iops
