"""The equal intervals that a trace is divided into for all that goes over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drivelab.trace.statistics.batch import Ints

MOST = 200


@dataclass(frozen=True)
class Intervals:
    """`count` intervals of `width_ns` from `origin_ns` on; the last may be shorter.

    They cover the trace with its last instant, which is as long as the resolution of its times.
    """

    origin_ns: int
    width_ns: int
    count: int
    span_ns: int

    @classmethod
    def of(cls, origin_ns: int, duration_ns: int, resolution_ns: int) -> Intervals:
        """At most MOST intervals, each a multiple of the resolution, so that none gets more instants than another."""
        span_ns = duration_ns + resolution_ns
        width_ns = -(-span_ns // (MOST * resolution_ns)) * resolution_ns
        return cls(origin_ns, width_ns, -(-span_ns // width_ns), span_ns)

    def number(self, times_ns: Ints) -> Ints:
        """Interval of each time; times beyond the trace count to its first or last."""
        return np.clip((times_ns - self.origin_ns) // self.width_ns, 0, self.count - 1)

    def edges_ns(self) -> Ints:
        """Shape (count + 1,), from the origin on."""
        return np.minimum(np.arange(self.count + 1) * self.width_ns, self.span_ns)
