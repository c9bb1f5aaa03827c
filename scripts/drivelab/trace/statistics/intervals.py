"""Divide a trace into equal intervals for all statistics over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from drivelab.trace.statistics.batch import Ints

MOST = 200


@dataclass(frozen=True)
class Intervals:
    """`count` intervals of `width_ns` from `origin_ns`; the last may be shorter.

    They cover the trace and its last instant, whose length is the resolution of the times.
    """

    origin_ns: int
    width_ns: int
    count: int
    span_ns: int

    @classmethod
    def of(cls, origin_ns: int, duration_ns: int, resolution_ns: int) -> Intervals:
        """Return at most MOST intervals, each a multiple of the resolution.

        So every interval has the same number of instants.
        """
        span_ns = duration_ns + resolution_ns
        width_ns = -(-span_ns // (MOST * resolution_ns)) * resolution_ns
        return cls(origin_ns, width_ns, -(-span_ns // width_ns), span_ns)

    def number(self, times_ns: Ints) -> Ints:
        """Return each time's interval; times beyond the trace get the first or last."""
        return np.clip((times_ns - self.origin_ns) // self.width_ns, 0, self.count - 1)

    def edges_ns(self) -> Ints:
        """Return the edges in ns from the origin, shape (count + 1,)."""
        return np.minimum(np.arange(self.count + 1) * self.width_ns, self.span_ns)
