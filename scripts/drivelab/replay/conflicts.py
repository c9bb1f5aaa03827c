"""Find requests that overlap an earlier one in flight by address.

Two requests conflict if they share bytes and at least one of them writes, discards or zeroes. The drive decides which
of the two comes first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from drivelab.replay import compiled
from drivelab.replay.engine_records import OPERATION_CODES
from drivelab.trace.statistics.batch import Flags, Ints


class Accesses(NamedTuple):
    """Requests in the order of the schedule; arrays of shape (requests,)."""

    begin: Ints
    end: Ints
    """Equal to `begin` for a request without an address."""
    changes: Flags
    """Whether the request changes data."""

    def part(self, chosen: slice | Flags | Ints) -> Accesses:
        return Accesses(self.begin[chosen], self.end[chosen], self.changes[chosen])


def accesses_of(operation: Ints, offset_bytes: Ints, length_bytes: Ints) -> Accesses:
    """Return what requests access; `operation` is an index into OPERATIONS."""
    return Accesses(offset_bytes, offset_bytes + length_bytes, operation != OPERATION_CODES["read"])


class Overlaps:
    """Find requests that conflict with an earlier one in flight, batch by batch.

    Memory holds the requests in flight.
    """

    def __init__(self) -> None:
        self._flying = Accesses(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_))
        self._ends_ns = np.zeros(0, np.int64)

    def of(self, accesses: Accesses, start_ns: Ints, end_ns: Ints) -> Flags:
        """Return which requests begin while a conflicting one, earlier in the order of `start_ns`, is in flight.

        A request with an end before its start is never in flight.
        """
        every = Accesses(*(np.concatenate(both) for both in zip(self._flying, accesses, strict=True)))
        ends_ns = np.concatenate([self._ends_ns, end_ns])
        result = compiled.overlaps(*every, ends_ns, start_ns)
        if start_ns.size:
            kept = ends_ns > start_ns[-1]
            self._flying, self._ends_ns = every.part(kept), ends_ns[kept]
        return result
