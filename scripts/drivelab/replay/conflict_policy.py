"""Apply the policy for overlapping requests to the records of a schedule."""

from __future__ import annotations

from typing import Any

import numpy as np

from drivelab.core.errors import UserError
from drivelab.core.units import format_size
from drivelab.replay.conflicts import Accesses, Order, Overlaps
from drivelab.replay.engine_records import FURTHER_DEPENDENCY, MORE, OPERATION_CODES, Records
from drivelab.trace.statistics.batch import Flags, Ints, Times

_NAMED = 3
"""Conflicts that a refusal names."""


def accesses_of(operation: Ints, offset_bytes: Ints, length_bytes: Ints) -> Accesses:
    """Return what requests access; `operation` is an index into OPERATIONS."""
    return Accesses(offset_bytes, offset_bytes + length_bytes, operation != OPERATION_CODES["read"])


class ConflictPolicy:
    """Count requests that overlap in the trace and, if chosen, let them wait for each other.

    Raises UserError when a trace without completions is to be refused for overlaps.
    """

    def __init__(self, policy: str, times: Times) -> None:
        self._policy = policy
        self._overlaps = Overlaps() if times.completed else None
        self._order = Order() if policy == "ordered" else None
        self._named: list[str] = []
        self._first = 0
        self._overlapping = self._waiting = 0
        if policy == "refused" and self._overlaps is None:
            raise UserError(
                "the trace has no completions, so it does not show which requests overlap in flight; "
                "choose conflicts as-traced or ordered"
            )

    def apply(self, records: Records, queue_ns: Ints, complete_ns: Ints) -> Records | None:
        """Count the next records of the schedule; return their further dependencies, if they wait for each other.

        Fields of `records` are changed. A request with unknown completion counts as never in flight.
        """
        operation, offset, length = (
            records[name].astype(np.int64) for name in ("operation", "offset_bytes", "length_bytes")
        )
        accesses = accesses_of(operation, offset, length)
        if self._overlaps is not None:
            overlap = self._overlaps.of(accesses, queue_ns, complete_ns)
            self._overlapping += int(overlap.sum())
            self._name(overlap, queue_ns, offset, length)
        index = self._first + np.arange(len(records))
        self._first += len(records)
        return None if self._order is None else self._link(records, index, *self._order.of(accesses, index))

    def finish(self) -> dict[str, Any]:
        """Return the counts; raise UserError when overlaps are refused and the trace has some.

        `overlapping` is None if the trace has no completions. `waiting` is the number of requests that wait for an
        overlapping one.
        """
        found = self._overlapping
        if self._policy == "refused" and found:
            raise UserError(
                f"{found:,} requests of the trace overlap an earlier one in flight, and one of the two "
                f"changes the data: {'; '.join(self._named)}{'; …' if found > _NAMED else ''}. The drive "
                "decides which of the two comes first; choose conflicts ordered or as-traced"
            )
        overlapping = None if self._overlaps is None else found
        return {"policy": self._policy, "overlapping": overlapping, "waiting": self._waiting}

    def _name(self, overlap: Flags, queue_ns: Ints, offset: Ints, length: Ints) -> None:
        for row in np.flatnonzero(overlap)[: _NAMED - len(self._named)]:
            place = f"{format_size(int(length[row]))} at {int(offset[row])} B"
            self._named.append(f"{place}, {queue_ns[row] / 1e9:.6f} s")

    def _link(self, records: Records, index: Ints, later: Ints, earlier: Ints) -> Records:
        """Store the first dependency of each record in the record, and return the others."""
        row = later - (index[0] if index.size else 0)
        self._waiting += np.unique(row).size
        other = records["after"][row] != earlier + 1
        row, later, earlier = row[other], later[other], earlier[other]
        first = np.ones(row.size, np.bool_)
        first[1:] = row[1:] != row[:-1]
        first &= records["after"][row] == 0
        records["after"][row[first]] = earlier[first] + 1
        records["flags"][row[~first]] |= MORE
        further = np.zeros(int((~first).sum()), FURTHER_DEPENDENCY)
        further["index"], further["after"] = later[~first], earlier[~first] + 1
        return further
